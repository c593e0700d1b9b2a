"""The smallest flip: the fewest words of a rewrite that still flip the verdict."""
