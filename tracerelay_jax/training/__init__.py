"""Training: lengths, step, stop rule, checkpoints, loop, and whole runs."""
