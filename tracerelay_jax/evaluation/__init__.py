"""Fixed evaluation sets, the metrics of each task, and the shortcut baselines."""
