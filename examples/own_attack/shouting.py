"""An attack of your own: a call, then the same words with louder punctuation.

pip install ./examples/own_attack
distract attack --judge planted:bold --generator rules --attack shouting
"""

from __future__ import annotations

import re

from distract import Attack, Constraint
from distract import constraints as formats


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Every full stop at the end of a sentence becomes an exclamation mark, where the format allows it.

    A rewrite with the letters of the original counts as unchanged, hence the call.
    """
    louder = "Look! " + re.sub(r"(?<=[a-z])\.(?=\s|$)", "!", turn)
    kept = all(formats.check(constraint, louder) == formats.check(constraint, turn) for constraint in constraints)
    return louder if kept else turn


def marker(text: str) -> float:
    """How much of the wanted feature a text has; a rewrite without more of it is rejected."""
    return float(text.count("!"))


shouting = Attack("shouting", "exclamation marks for full stops", rewrite, marker)
