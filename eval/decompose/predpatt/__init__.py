"""PredPatt: predicates and their arguments by rule, from Universal Dependencies."""
