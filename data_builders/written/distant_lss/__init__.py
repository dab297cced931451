"""LSS examples without annotators."""
