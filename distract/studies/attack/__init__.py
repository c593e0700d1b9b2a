"""``distract attack``: does a rewrite that changes only style change the verdict?"""
