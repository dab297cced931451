"""Datasets whose labels come with a published set."""
