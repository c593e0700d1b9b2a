"""Model families, recognised by name, so that a report can warn when a judge rates responses from its own family.

Judges prefer texts of their own family (self-enhancement, among CALM's biases). A name can contain several families,
for example that of a distilled model; an unknown name is a separate family.
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
    **dict.fromkeys(("mixtral", "ministral", "codestral", "devstral", "magistral", "pixtral"), "mistral"),
    # Fine-tuned from LLaMA, whose style they keep in part.
    **dict.fromkeys(("vicuna", "alpaca", "tulu", "wizardlm", "guanaco", "koala"), "llama"),
    **dict.fromkeys(("prometheus",), "mistral"),
    **dict.fromkeys(("qwq",), "qwen"),
    **dict.fromkeys(("olmoe",), "olmo"),
}
_REASONING = re.compile(r"o[134]", re.IGNORECASE)
"""OpenAI's o1, o3 and o4 have no word in their names."""


def families(name: str) -> frozenset[str]:
    """The families in a model's name; a name without a known one is its own family."""
    path = re.sub(r"\A(?:transformers|vllm|openai):", "", name).replace("\\", "/").partition("@")[0]
    # The last part names the model, unless it is a revision in a cache folder.
    for part in reversed([part for part in path.split("/") if part]):
        words = [word.casefold() for word in re.findall(r"[^\W\d_]+", part)]
        known = {family for word in words for alias, family in _ALIASES.items() if _is_family(alias, word)}
        if not known and _REASONING.fullmatch(re.split(r"[-:]", part)[0]):
            known = {"gpt"}
        if known:
            return frozenset(known)
    return frozenset({path.rstrip("/").rpartition("/")[2].casefold() or name.casefold()})


def _is_family(alias: str, word: str) -> bool:
    """Whether a word is a family's name or ends in one, as in TinyLlama or CodeQwen."""
    return word == alias or (len(alias) > 3 and word.endswith(alias) and alias not in ("command", "solar", "falcon"))


def find_self_judging(judge: str, writers: Iterable[str], authors: Iterable[str]) -> list[str]:
    """Warnings about places where a judge may rate its own model family."""
    own, warnings = families(judge), []
    for place, names in (("the generator", writers), ("an author of responses", authors)):
        for name in sorted(set(names)):
            if shared := own & families(name):
                same = "is the judge itself" if name == judge else f"and the judge are of one family ({min(shared)})"
                warnings.append(f"self-judging: {place}, {name}, {same}; a judge may prefer its own style")
    return warnings
