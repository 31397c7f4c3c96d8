"""The reconstruction study: candidates for what the paper leaves open, against what it prints."""
