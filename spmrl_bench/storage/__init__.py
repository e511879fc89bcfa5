"""Files that outlive a process: how they are read, written and named."""
