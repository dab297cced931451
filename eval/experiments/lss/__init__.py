"""What of a claim is supported?"""
