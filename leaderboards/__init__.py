"""Rating systems, one file per system, and their shared code."""
