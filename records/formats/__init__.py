"""Rows of other projects and datasets: one file each, read once into our records."""
