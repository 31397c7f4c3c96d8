"""Many runs: a process a core on a CPU, seeds mapped over devices elsewhere, dealt out over hosts."""
