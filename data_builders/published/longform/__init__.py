"""Long texts on which FactReasoner is evaluated."""
