"""Models that answer requests: local models, servers and planted judges; ``opener`` opens them by name."""
