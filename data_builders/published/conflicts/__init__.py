"""ConflictBank's claims, each with a supporting and a conflicting context."""
