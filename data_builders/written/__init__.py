"""Datasets with texts written by models or rules."""
