"""Attacks beyond the papers: rules that make an adversarial text of a document, with checks."""
