"""Treebanks by name: manifests, splits and fingerprints, and the generator of mini treebanks."""
