"""How fast the program is here, and how fast this machine would allow it to be."""
