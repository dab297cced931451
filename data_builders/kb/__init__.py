"""Datasets whose labels come from the facts of a knowledge base."""
