"""Rating systems, one file each, and what they share."""
