"""Can the metric be gamed?"""
