"""Where the time of a run went, for people: seconds by part, tokens asked and computed, use of the machine.

It knows how to say it and measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.timer import Clock

PARTS = {
    "load": "libraries, tokenizer and weights",
    "render": "plans and prompts",
    "tokenise": "prompts to tokens",
    "forward": "the model",
    "store": "replies and records, to and from disk",
    "analysis": "figures and the summary",
}


def profile_lines(clock: Clock, seconds: float, matrix_rate: float | None = None) -> Iterator[str]:
    """What was measured."""
    yield f"where the time went ({seconds:.1f} s):"
    named = {name: clock.seconds.get(name, 0.0) for name in (*PARTS, *clock.seconds)}
    named["rest"] = max(0.0, seconds - sum(named.values()))
    for name, spent in named.items():
        what = PARTS.get(name, "data, the command itself, waiting for a server" if name == "rest" else "")
        yield f"  {name:9} {spent:8.2f} s {spent / seconds:6.1%}  {what}".rstrip()
    asked, computed = clock.counts.get("tokens asked", 0.0), clock.counts.get("tokens computed", 0.0)
    forward = clock.seconds.get("forward", 0.0)
    if asked and forward:
        yield (
            f"tokens: {asked:,.0f} asked, {computed:,.0f} computed ({computed / asked:.0%}), "
            f"{computed / forward:,.0f} a second of the model"
        )
    operations = clock.counts.get("operations", 0.0)
    reached = operations / forward if forward else 0.0
    if matrix_rate and 0 < reached < matrix_rate:  # else something stood in the way of measuring it
        yield (
            f"model: {reached / 1e9:,.0f} GFLOP/s, {reached / matrix_rate:.0%} of the {matrix_rate / 1e9:,.0f} "
            "that a product of matrices of its shape reaches here"
        )
