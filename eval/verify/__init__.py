"""Claims and evidence to verdicts."""
