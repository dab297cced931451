"""Datasets with human labels."""
