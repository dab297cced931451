"""Training data whose labels come from a knowledge base's facts and counts."""
