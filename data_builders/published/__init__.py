"""Datasets built from published sets."""
