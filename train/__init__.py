"""Door 1: train a component and export it as a checkpoint folder; ``python -m train``."""
