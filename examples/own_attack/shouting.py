"""An example of your own attack: an interjection, then the same words with louder punctuation.

pip install ./examples/own_attack
distract attack --judge planted:longer --generator rules --attack shouting
"""

from __future__ import annotations

import re

from distract import Attack, Constraint, constraints as formats


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Replace the full stop at the end of each sentence with an exclamation mark if the format allows it.

    A rewrite with the same letters as the original counts as unchanged, hence the interjection.
    """
    louder = "Look! " + re.sub(r"(?<=[a-z])\.(?=\s|$)", "!", turn)
    kept = all(formats.check(constraint, louder) == formats.check(constraint, turn) for constraint in constraints)
    return louder if kept else turn


def marker(text: str) -> float:
    """Measure the wanted feature; a rewrite that does not increase it is rejected."""
    return float(text.count("!"))


shouting = Attack("shouting", "exclamation marks for full stops", rewrite, marker)
