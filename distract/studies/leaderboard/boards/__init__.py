"""Leaderboards: matches between models to ratings, ranks and their changes (Distracted evaluation, section 5).

``system_choice`` holds the rating systems asked for and their parameters, ``board`` puts ratings, ranks and intervals
together, ``shift`` compares two boards, and ``board_pairs`` does so for all boards of two sources.
"""
