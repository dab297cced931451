"""True and false claims among contexts that disagree."""
