"""Scored documents as other projects write them."""

from eval.exports.exports import Format, write_formats

__all__ = ["Format", "write_formats"]
