"""``distract leaderboard --judge``: models play each other before a judge, the lowest are restyled, and play again.

DESIGN, measure 4; Distracted evaluation, section 5. ``pairing`` draws who plays whom, ``asking`` has it judged,
``measuring`` makes boards of the rows, ``preparing`` puts a run together. It knows no protocol, attack, rating system
or data set by name.
"""
