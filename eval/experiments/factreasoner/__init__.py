"""FactReasoner against other assessors, and relation models."""
