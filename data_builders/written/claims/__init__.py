"""Labelled claims: their sources, known facts, and checks of changed texts."""
