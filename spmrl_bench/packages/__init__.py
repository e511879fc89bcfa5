"""Models to share: a run's best parser as a package, and packages by path or name."""
