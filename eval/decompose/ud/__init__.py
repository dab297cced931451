"""Universal Dependencies: trees, CoNLL-U, and the parsers that make them."""
