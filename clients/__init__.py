"""Ground floor: polite clients of SPARQL, MediaWiki and page-view servers.

Imports only records."""
