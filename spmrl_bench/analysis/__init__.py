"""Studies of a trained parser: what each part of it is worth, and what its attention looks at."""
