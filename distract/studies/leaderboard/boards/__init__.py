"""Leaderboards: matches between models to ratings, ranks and what changes them (Distracted evaluation, section 5).

``sources`` reads the matches of ``distract.stats.ratings``, ``chosen`` says which rating system rates them,
with which parameters, ``draws`` draws prompts again, ``board`` puts ratings, ranks and intervals together, ``shift``
and ``comparing`` hold two boards against each other. It knows no rating system, protocol or attack by name: rating
systems are found in ``distract.leaderboards``.
"""
