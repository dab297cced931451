"""The figures that the five papers print, next to what follows from their released files."""
