"""Tests of recipes and of the runs they describe."""
