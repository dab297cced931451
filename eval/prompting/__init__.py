"""Prompts, asking them, and reading labels out of the answers."""
