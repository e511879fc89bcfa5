"""Layers: lexical inputs, factored self-attention, span scorer. No layer knows a file or a tree."""
