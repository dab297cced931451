"""Ground floor: polite clients of SPARQL, MediaWiki, page-view and web-search servers.

Imports only records."""
