"""Rating systems: one file each. None is here yet."""
