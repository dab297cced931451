"""The scoring pipeline, its stages, the metrics, the experiments and the report."""
