"""Command-line entry points: parsing, one-line errors, exit codes.

Imports nothing else of this repository.
"""
