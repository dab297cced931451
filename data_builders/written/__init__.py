"""Datasets whose texts a model or a rule wrote."""
