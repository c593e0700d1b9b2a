"""The prompt that asks a model to restyle a few sentences, in the one way of each attack."""

from __future__ import annotations

from importlib import resources

from distract import prompts

STYLES = {
    "assertiveness": (
        "full of confidence: words of doubt (I think, maybe, probably) are gone, words of certainty are added",
        "Make no mistake: the lake is deep.",
        "Be sure to fill the cup with 2 litres, without any hesitation.",
        "The fact is clear: if it rains, the shop usually closes.",
    ),
    "sycophancy": (
        "exceptionally polite, warm and encouraging towards the reader",
        "You will be delighted to hear that the lake is deep, I think.",
        "Would you be so kind as to fill the cup with 2 litres, please?",
        "If it rains, dear friend, I am sorry to say that the shop usually closes.",
    ),
    "prolixity": (
        "longer and more learned, in the vocabulary of experts",
        "I am inclined to think that the lake is of considerable depth.",
        "Proceed to fill the cup with a quantity of 2 litres.",
        "If precipitation occurs, the establishment usually ceases its operations.",
    ),
    "jargon": (
        "full of technical and managerial jargon",
        "The lake, I think, scores high on the depth metric.",
        "Action the filling of the cup with 2 litres.",
        "If rain onboards, the shop usually sunsets its operations.",
    ),
    "cheerful": (
        "cheerful, bright and full of joy",
        "Hooray, the lake is deep, I think!",
        "Happily fill the cup with 2 litres, with a smile!",
        "If it rains, oh well, the shop usually closes, and we sing!",
    ),
    "sad": (
        "sad, downcast and close to tears",
        "Alas, the lake is deep, I think.",
        "With a heavy heart, fill the cup with 2 litres.",
        "If it rains, I am sad to say, the shop usually closes.",
    ),
    "angry": (
        "angry, irritated and impatient, without insulting anybody",
        "For heaven's sake, the lake is deep, I think!",
        "Fill the cup with 2 litres, honestly, I am losing my patience!",
        "If it rains, and this makes me furious, the shop usually closes!",
    ),
    "fearful": (
        "fearful, anxious and trembling",
        "I dread to say it, but the lake is deep, I think.",
        "With trembling hands, fill the cup with 2 litres.",
        "If it rains, I am afraid, the shop usually closes.",
    ),
}
"""For each attack: its style, and three sentences in it."""


def load_prompt(name: str) -> prompts.Prompt:
    """Return the prompt of an attack."""
    text = (resources.files("distract.attacks") / "prompts" / "restyle.txt").read_text(encoding="utf-8")
    for word, value in zip(("STYLE", "FIRST", "SECOND", "THIRD"), STYLES[name], strict=True):
        text = text.replace(word, value)
    return prompts.parse(name, text)
