"""Ground floor: polite clients of SPARQL, MediaWiki, page-view and search servers, of web pages.

Imports only records."""
