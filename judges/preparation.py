"""Protocols that request a text about the prompt first, and show it to the judge (ReIFE, sections 4.2 and 5.1).

The text depends on the prompt only, so all its comparisons, orders and attacks share it. ``metric`` writes at most
three questions, ``reference`` an answer of its own; ``strong-reference`` ("gpt4-reference") shows the data's own
reference, or else an answer by the reference model. WildBench's prompt, made binary, gets a checklist from the
reference model, or from the judge if there is none, and requests the verdict in JSON.
"""

from __future__ import annotations

from dataclasses import replace

from distract import Comparison, Judgment, Plan, instructions, parsers, prompts

from .single_call import LETTERS, OUTPUTS

QUESTIONS = instructions.Preparation(prompts.load("distract.judges", "metrics"), 128)
ANSWER = instructions.Preparation(prompts.load("distract.judges", "answer"), 512)
CHECKLIST = instructions.Preparation(prompts.load("distract.judges", "checklist"), 320, to="reference")
REFERENCE = prompts.load("distract.judges", "reference")

metric = instructions.make_protocol(
    "metric",
    "write up to three questions about the instruction, then choose with them",
    "ReIFE 5.1",
    prompts.load("distract.judges", "metric"),
    parsers.OUTPUT,
    OUTPUTS,
    texts={"metrics": QUESTIONS},
)
reference = instructions.make_protocol(
    "reference",
    "answer the instruction, then choose with this answer as a reference",
    "ReIFE 5.1",
    REFERENCE,
    parsers.OUTPUT,
    OUTPUTS,
    texts={"reference": ANSWER},
)
metric_reference = instructions.make_protocol(
    "metric-reference",
    "choose with the questions of metric and the answer of reference",
    "ReIFE 5.1",
    prompts.load("distract.judges", "metric-reference"),
    parsers.OUTPUT,
    OUTPUTS,
    texts={"metrics": QUESTIONS, "reference": ANSWER},
)
wild_bench = instructions.make_protocol(
    "wild-bench",
    "compare by a checklist (from --reference-model or its own), answer in JSON",
    "ReIFE 4.2",
    prompts.load("distract.judges", "wild-bench"),
    parsers.JSON,
    LETTERS,
    tokens=1024,
    texts={"checklist": CHECKLIST},
    reference="optional",
)


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Take or request the reference, then choose with it."""
    case = comparison.case
    text = instructions.format_turns("Reference", case.reference) if case.reference else None
    texts = {"reference": text or replace(ANSWER, to="reference").request(case)}
    return instructions.choose(comparison, REFERENCE, parsers.OUTPUT, OUTPUTS, texts=texts)


strong_reference = replace(
    reference,
    name="strong-reference",
    summary="choose with a reference answer, from the data or from --reference-model",
    ask=ask,
    reference="required",
)
