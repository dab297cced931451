"""Statements that are true of almost any member of a domain."""
