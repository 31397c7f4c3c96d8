"""Pictures for the README and the report."""
