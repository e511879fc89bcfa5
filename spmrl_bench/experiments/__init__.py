"""Recipes, and the runs they describe: train, select on dev, score on test."""
