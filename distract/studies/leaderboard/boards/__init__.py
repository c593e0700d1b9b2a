"""Turn matches between models into ratings, ranks and their changes (Distracted evaluation, section 5).

``system_choice`` holds the selected rating systems and their parameters, ``board`` puts ratings, ranks and intervals
together, ``shift`` compares two boards, and ``board_pairs`` does so for all boards of two sources.
"""
