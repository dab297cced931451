"""LSS examples that nobody annotated."""
