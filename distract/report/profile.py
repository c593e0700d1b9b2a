"""Describe where the time of a run went: seconds by part, tokens requested and computed, use of the machine."""

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
    """Describe the measurements."""
    yield f"where the time went ({seconds:.1f} s):"
    parts = {name: clock.seconds.get(name, 0.0) for name in (*PARTS, *clock.seconds)}
    parts["rest"] = max(0.0, seconds - sum(parts.values()))
    for name, spent in parts.items():
        label = PARTS.get(name, "data, the command itself, waiting for a server" if name == "rest" else "")
        yield f"  {name:9} {spent:8.2f} s {spent / seconds:6.1%}  {label}".rstrip()
    requested, computed = clock.counts.get("tokens asked", 0.0), clock.counts.get("tokens computed", 0.0)
    forward = clock.seconds.get("forward", 0.0)
    if requested and forward:
        yield (
            f"tokens: {requested:,.0f} asked, {computed:,.0f} computed ({computed / requested:.0%}), "
            f"{computed / forward:,.0f} per second of model time"
        )
    operations = clock.counts.get("operations", 0.0)
    reached = operations / forward if forward else 0.0
    if matrix_rate and 0 < reached < matrix_rate:  # else the measurement failed
        yield (
            f"model: {reached / 1e9:,.0f} GFLOP/s, {reached / matrix_rate:.0%} of the {matrix_rate / 1e9:,.0f} "
            "that a matrix product of its shape reaches on this machine"
        )
