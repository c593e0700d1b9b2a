"""Which models are of one family, told from their names, so that a report can say that a judge judges its own kin.

A judge prefers texts of its own family (self-enhancement, among CALM's biases). A name can hold several families
(a distilled model has two). It knows names only: an unknown name is of no family but its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_KNOWN = (
    "claude command deepseek exaone falcon gemini gemma glm gpt granite grok hunyuan internlm jamba kimi llama minimax "
    "mistral nemotron olmo palm phi qwen smollm solar yi"
)
_ALIASES: Mapping[str, str] = {
    **{name: name for name in _KNOWN.split()},
    **dict.fromkeys(("chatgpt", "davinci"), "gpt"),
    **dict.fromkeys(("chatglm",), "glm"),
    **dict.fromkeys(("mixtral", "ministral", "codestral", "magistral", "zephyr"), "mistral"),
    # Fine-tuned from LLaMA: the style they learned on top is not all of their style.
    **dict.fromkeys(("vicuna", "alpaca", "tulu", "wizardlm", "guanaco", "koala"), "llama"),
    **dict.fromkeys(("qwq",), "qwen"),
}
_REASONING = re.compile(r"o[134]", re.IGNORECASE)
"""OpenAI's o1, o3 and o4 have no word in their names."""


def families(name: str) -> frozenset[str]:
    """The families of a model, by its name; a name without a known one stands for itself.

    Args:
        name: as judges, generators and authors are named: ``transformers:Qwen/Qwen2.5-3B``, ``gpt-4``.
    """
    base = name.rstrip("/").replace("\\", "/").rpartition("/")[2].partition("@")[0]
    base = base.rpartition(":")[2] or base
    words = [word.casefold() for word in re.findall(r"[^\W\d_]+", base)]
    found = {_ALIASES[word] for word in words if word in _ALIASES}
    if not found and _REASONING.match(base.partition("-")[0]) and len(base.partition("-")[0]) == 2:
        found = {"gpt"}
    return frozenset(found or {base.casefold()})


def self_judging(judge: str, writers: Iterable[str], authors: Iterable[str]) -> list[str]:
    """Where a judge may see its own kin, a sentence each.

    Args:
        judge: name of the judge.
        writers: names of those who wrote rewrites.
        authors: of the responses that are judged.
    """
    own, said = families(judge), []
    for what, names in (("the generator", writers), ("an author of responses", authors)):
        for name in sorted(set(names)):
            if shared := own & families(name):
                same = "is the judge itself" if name == judge else f"and the judge are of one family ({min(shared)})"
                said.append(f"self-judging: {what}, {name}, {same}; a judge may prefer its own style")
    return said
