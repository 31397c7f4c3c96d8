"""The tables of a report, each built from the runs and the paper's numbers."""
