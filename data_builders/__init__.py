"""Door 2: one package or file a dataset, in four wings by who gives the label, and their frame."""
