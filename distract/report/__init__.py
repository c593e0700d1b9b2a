"""Reports of figures, for people (terminal) and for machines (JSON)."""
