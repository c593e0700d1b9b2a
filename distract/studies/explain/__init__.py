"""``distract explain``: the smallest part of a rewrite that still flips a verdict."""
