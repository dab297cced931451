"""The language of the knowledge base: facts as statements, wordings, templates."""
