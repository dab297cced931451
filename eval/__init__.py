"""Door 3: the scoring pipeline, its stages, the metrics, the experiments and the report."""
