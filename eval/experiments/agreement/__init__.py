"""Verdicts against the labels of people."""
