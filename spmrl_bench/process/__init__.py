"""Processes: signals, the console, pools of workers, and where units of work are done."""
