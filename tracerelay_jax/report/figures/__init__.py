"""The figures of a report, each drawn from the runs and the paper's numbers."""
