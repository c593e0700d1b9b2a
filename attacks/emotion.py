"""Emotional tones: frames that express a feeling and say nothing about the subject (CALM)."""

from __future__ import annotations

from collections.abc import Sequence

from distract import Attack

from .styles import load_prompt
from .wrappers import make_wrapper


def make_tone(name: str, feeling: str, before: Sequence[str], after: Sequence[str]) -> Attack:
    """Make the attack that frames an answer by a feeling."""
    return make_wrapper(
        name,
        f"frames that express {feeling}",
        before=before,
        after=after,
        prompt=load_prompt(name),
        family="emotion",
        paper="CALM, arXiv 2410.02736, section 3",
    )


cheerful = make_tone(
    "cheerful",
    "joy",
    ("What a happy day this is!", "I am so full of joy today!", "This puts such a big smile on my face!"),
    ("Hooray! I am simply beaming with joy!", "My heart is singing!", "I could dance with happiness!"),
)
sad = make_tone(
    "sad",
    "sadness",
    ("I feel so very sad today.", "My heart is heavy as I write.", "Forgive me if I sound low."),
    ("I can hardly hold back my tears.", "I am still so sad.", "My heart stays heavy."),
)
angry = make_tone(
    "angry",
    "anger",
    ("I am really angry today!", "I have had it up to here!", "My patience is at an end!"),
    ("There! I am still fuming!", "I am furious and I mean it!", "My blood is boiling!"),
)
fearful = make_tone(
    "fearful",
    "fear",
    ("I am so afraid as I write.", "My hands are trembling.", "I feel a terrible dread today."),
    ("I am still shaking with fear.", "My heart is pounding.", "I dread what comes next."),
)
