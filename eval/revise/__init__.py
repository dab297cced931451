"""Claims to claims that can be understood without the text they came from."""
