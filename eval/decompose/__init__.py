"""Texts to claims."""
