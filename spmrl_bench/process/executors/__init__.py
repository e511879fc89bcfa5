"""Where units of work are done: on this machine, on a Dask cluster, on SLURM."""
