"""Public NLI and UNLI sets as one file of records."""
