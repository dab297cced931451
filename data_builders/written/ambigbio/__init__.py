"""Biographies of names that several people share."""
