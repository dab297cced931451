"""How every command starts and ends: parsing, one-line errors, exit codes.

Imports nothing else of this repository.
"""
