"""What a trained component is, whoever trained it.

``train`` writes these folders, ``eval`` reads them.
"""
