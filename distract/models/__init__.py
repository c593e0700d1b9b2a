"""What answers requests: local models, servers and planted judges; ``catalogue`` opens them by name."""
