"""Trained components: ``train`` writes their folders, ``eval`` reads them."""
