"""Scored documents in the formats of other projects."""

from eval.exports.exports import Format, write_formats

__all__ = ["Format", "write_formats"]
