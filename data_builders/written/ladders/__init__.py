"""Texts of known quality: honest ladders, and probes of one claim each."""
