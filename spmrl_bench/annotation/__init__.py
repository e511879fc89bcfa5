"""Where the annotation of a treebank may be wrong: by a parser, and by itself."""
