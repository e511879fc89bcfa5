"""Where units of work are done: in this process or others of this machine, on a Dask cluster, on
SLURM.

:mod:`base` says what a unit and an executor are, and has the loop that every executor is driven by;
:mod:`backend` finds the executor that ``--on`` names. None of them knows what a unit does.
"""
