"""How much does the decomposer decide?"""
