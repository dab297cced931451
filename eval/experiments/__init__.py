"""One file a paper's table or figure."""
