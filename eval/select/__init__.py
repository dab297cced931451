"""Subclaim selection (Core)."""
