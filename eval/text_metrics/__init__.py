"""Ready metrics that score whole texts, for ``text_metrics`` of ``experiment robustness``."""
