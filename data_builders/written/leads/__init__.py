"""Lead paragraphs of Wikipedia articles, and the statements that they entail."""
