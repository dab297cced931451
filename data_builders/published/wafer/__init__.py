"""WAFER's citations as pairs of a claim and the page that it cites."""
