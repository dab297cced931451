"""Whose facts are these?"""
