"""One module per treebank format: from a file to trees or graphs, with a place in every error."""
