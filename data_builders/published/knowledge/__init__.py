"""Build knowledge sources in FActScore's format."""
