"""Aggregation of verdicts; each an `evaluate` module, loadable offline by path."""
