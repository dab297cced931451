"""Supported subclaims, half of them made false."""
