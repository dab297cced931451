"""Door 2: one package or file a dataset, and the polite clients they share."""
