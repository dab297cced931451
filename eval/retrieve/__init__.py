"""Claims to evidence."""
