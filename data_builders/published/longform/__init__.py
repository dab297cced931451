"""The long texts that FactReasoner and its rivals are compared on."""
