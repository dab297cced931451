"""Training data from the facts of a knowledge base."""
