"""What arithmetic alone says about the tasks, to set measured figures beside."""
