"""Treebanks by name: manifests, splits and fingerprints."""
