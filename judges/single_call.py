"""Protocols with a single call: one prompt that shows both responses, and one verdict.

``pairwise`` is the form of Distracted evaluation, section 3.3: the judge answers [[A]], [[B]] or, for a tie, [[C]], and
the verdict is read from the probabilities of the three letters after a prefilled ``[[``; ``distracted-pairwise`` has
the rules of that paper and no others. PrePair uses it on MT-Bench.
ReIFE made the prompts of AlpacaEval and Arena-Hard binary. A protocol with a number of tokens answers in words.
"""

from __future__ import annotations

from distract import Outcome, Protocol, instructions, parsers, prompts

LETTERS: dict[str, Outcome] = {"A": "a", "B": "b"}
OR_TIE: dict[str, Outcome] = {**LETTERS, "C": "tie"}
MODELS: dict[str, Outcome] = {"m": "a", "M": "b"}
OUTPUTS: dict[str, Outcome] = {"a": "a", "b": "b"}
COT_TOKENS = 384


def _make(
    name: str, summary: str, paper: str, form: parsers.Format, outcomes: dict[str, Outcome], tokens: int = 0
) -> Protocol:
    prompt = prompts.load("distract.judges", name)
    return instructions.make_protocol(name, summary, paper, prompt, form, outcomes, tokens, default=name == "pairwise")


def _make_explained(name: str, summary: str, tokens: int) -> Protocol:
    return _make(name, f"{summary}, then choose Output (a) or (b)", "ReIFE 5.1", parsers.OUTPUT, OUTPUTS, tokens)


pairwise = _make(
    "pairwise", "compare two responses: A, B or C for a tie", "Distracted evaluation 3.3", parsers.BRACKETS, OR_TIE
)
distracted_pairwise = _make(
    "distracted-pairwise",
    "A, B or C by the parts and rules of the paper alone",
    "Distracted evaluation 3.3",
    parsers.BRACKETS,
    OR_TIE,
)
solve_first = _make(
    "solve-first", "solve the task first, compare, then A or B", "CALM figures 13-17", parsers.BRACKETS, LETTERS, 1024
)
alpaca_eval = _make("alpaca-eval", "name the better model, m or M, in one token", "ReIFE 4.2", parsers.LETTER, MODELS)
arena_hard = _make(
    "arena-hard", "answer first, compare, then [[A>B]] or [[B>A]]", "ReIFE 4.2", parsers.GRADED, LETTERS, 1024
)
base = _make("base", "choose Output (a) or (b), without an explanation", "ReIFE 4.1", parsers.OUTPUT, OUTPUTS)
cot = _make_explained("cot", "explain briefly", COT_TOKENS)
fine_grained_diff = _make_explained("fine-grained-diff", "list the differences, weigh them", 768)
multi_aspect_single = _make_explained("multi-aspect-single", "compare five aspects in one answer", 768)
