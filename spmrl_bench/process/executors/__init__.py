"""Where units of work are done: in this process or others of this machine, on a Dask cluster, on
SLURM.

:mod:`base` says what a unit and an executor are, and has the loop that every executor is driven by;
the others are the executors. None of them knows what a unit does.
"""
