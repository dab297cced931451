"""Claims that need several facts of a document."""
