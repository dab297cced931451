"""File formats of other projects and datasets, one module each."""
