"""Documents with labelled claims: what is known to be true, and whether a change is valid."""
