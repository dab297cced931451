"""Effect of the decomposer on scores."""
