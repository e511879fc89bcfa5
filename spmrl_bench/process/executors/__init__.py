"""Where work is done: in processes of this machine, on a Dask cluster, on SLURM."""
