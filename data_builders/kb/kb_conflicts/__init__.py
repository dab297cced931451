"""True and false claims with conflicting contexts."""
