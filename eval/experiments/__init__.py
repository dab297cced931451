"""One folder a question of the papers; ``python -m eval experiment NAME``."""
