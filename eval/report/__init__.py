"""Results to a self-contained HTML page."""
