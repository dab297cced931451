"""Rate-limited, caching clients for SPARQL, MediaWiki, page views, web search and web pages.

Imports only records.
"""
