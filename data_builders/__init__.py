"""Dataset builders, grouped by the source of the labels."""
