"""OpenAI-compatible servers: requests over HTTP, paced, retried, and read as replies."""
