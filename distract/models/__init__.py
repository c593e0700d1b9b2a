"""What answers requests: local models, servers and planted judges; ``opening`` opens them by name."""
