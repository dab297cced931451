"""The commands of ``python -m eval``, one module per command."""
