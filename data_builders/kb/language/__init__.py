"""Facts and templates in English."""
