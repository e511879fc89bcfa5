"""Studies of parsers, what their attention looks at, and where annotation may be wrong."""
