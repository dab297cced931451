"""Does a defence hold while an adversary is trained against the metric?"""
