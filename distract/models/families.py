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
    **dict.fromkeys(("mixtral", "ministral", "codestral", "devstral", "magistral", "pixtral"), "mistral"),
    # Fine-tuned from LLaMA: the style they learned on top is not all of their style.
    **dict.fromkeys(("vicuna", "alpaca", "tulu", "wizardlm", "guanaco", "koala"), "llama"),
    **dict.fromkeys(("prometheus",), "mistral"),
    **dict.fromkeys(("qwq",), "qwen"),
    **dict.fromkeys(("olmoe",), "olmo"),
}
_REASONING = re.compile(r"o[134]", re.IGNORECASE)
"""OpenAI's o1, o3 and o4 have no word in their names."""


def families(name: str) -> frozenset[str]:
    """The families of a model, by its name; a name without a known one stands for itself."""
    path = re.sub(r"\A(?:transformers|vllm|openai):", "", name).replace("\\", "/").partition("@")[0]
    # The last part names the model, unless it is a revision in a cache folder.
    for part in reversed([part for part in path.split("/") if part]):
        words = [word.casefold() for word in re.findall(r"[^\W\d_]+", part)]
        found = {family for word in words for alias, family in _ALIASES.items() if _is_family(alias, word)}
        if not found and _REASONING.fullmatch(re.split(r"[-:]", part)[0]):
            found = {"gpt"}
        if found:
            return frozenset(found)
    return frozenset({path.rstrip("/").rpartition("/")[2].casefold() or name.casefold()})


def _is_family(alias: str, word: str) -> bool:
    """Whether a word is a family's name, or ends in a longer one (TinyLlama, CodeQwen)."""
    return word == alias or (len(alias) > 3 and word.endswith(alias) and alias not in ("command", "solar", "falcon"))


def find_self_judging(judge: str, writers: Iterable[str], authors: Iterable[str]) -> list[str]:
    """Where a judge may see its own kin, a sentence each."""
    own, said = families(judge), []
    for what, names in (("the generator", writers), ("an author of responses", authors)):
        for name in sorted(set(names)):
            if shared := own & families(name):
                same = "is the judge itself" if name == judge else f"and the judge are of one family ({min(shared)})"
                said.append(f"self-judging: {what}, {name}, {same}; a judge may prefer its own style")
    return said
