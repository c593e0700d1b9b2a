"""Reports: figures to people (terminal) and to machines (JSON)."""
