"""Measurements of the package on the machine at hand."""
