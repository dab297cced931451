"""Datasets whose labels people gave."""
