"""Test formats of published outputs on hand-written files, by stored winner and by stored text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from loops import each

from distract.core.records import Row
from distract.judging import published as replay
from distract.judging.published import PublishedRun

DATA = Path(__file__).parents[1] / "data" / "replay"
LLMBAR = "llmbar/Colours/evaluators/judge-1"
JUDGEBENCH = "judgebench/dataset=judgebench,response_model=writer-1"
REIFE = "reife/colours"
FASTCHAT = "fastchat/colours/model_judgment/gpt-x_pair.jsonl"
PAIRS = ["question-1-turn-1-ant-vs-bee", "question-1-turn-2-ant-vs-bee", "question-2-turn-1-ant-vs-bee"]


def load_one(name: str) -> PublishedRun:
    (published,) = replay.load(str(DATA / name))
    return published


def list_verdicts(rows: tuple[Row, ...]) -> list[list[str | None]]:
    """The verdict in each order, or the reason why it is missing."""
    return [[judgment.preferred or judgment.failure for judgment in row.judgments] for row in rows]


GOLDEN = [
    (
        f"{LLMBAR}/Reference/result.json",
        ("judge-1", "Reference", "Colours"),
        [["a", "a"], ["b", "no verdict"], ["b", "b"]],
        # The last answer of the swapped order is truncated before its verdict, but its winner is stored.
        [["a", "a"], ["b", "no verdict"], ["b", "truncated"]],
    ),
    (f"{LLMBAR}/Rating/result.json", ("judge-1", "Rating", "Colours"), [["b", "a"]], None),
    (
        "pairs",
        ("judge-7B", "pairwise", "pairs"),
        # Letters are slots: A under both orders is once ant and once cow. bee stands first in the file, ant in a row.
        [["a", "b"], ["error", "a"], ["a", "a"], ["a", "tie"]],
        [["a", "b"], ["no verdict", "a"], ["a", "a"], ["a", "tie"]],
    ),
    (
        f"{JUDGEBENCH},judge_name=arena_hard,judge_model=lab_judge-1.jsonl",
        ("lab/judge-1", "arena_hard", "judgebench writer-1"),
        [["a", "a"], ["tie", "no verdict"], ["no verdict", "no verdict"], ["no verdict"]],
        [["a", "a"], ["tie", "no verdict"], ["a", "no verdict"], ["b"]],
    ),
    (
        f"{JUDGEBENCH},judge_name=reward_model,judge_model=reward-1.jsonl",
        ("reward-1", "reward_model", "judgebench writer-1"),
        [["a", "a"]],
        None,
    ),
    (
        f"{REIFE}.llama-3.1-8b.base_pairwise.pairwise_vanilla.jsonl",
        ("llama-3.1-8b", "base_pairwise.pairwise_vanilla", "colours"),
        # Verdicts are not mapped back, and the swapped file orders its rows differently.
        [["a", "a"], ["b", "a"], ["no verdict", "a"]],
        [["a", "a"], ["b", "a"], ["no verdict", "a"]],
    ),
    (
        f"{REIFE}.gpt-4.protocol_vote.majority_vote.jsonl",
        ("gpt-4", "protocol_vote.majority_vote", "colours"),
        [["a"], ["tie"], ["a"]],
        None,
    ),
    (
        f"{REIFE}.gpt-4.pairwise_chateval.pairwise_chateval_swap.round_1.jsonl",
        ("gpt-4", "pairwise_chateval.pairwise_chateval.round_1", "colours"),
        [["b"]],
        [["b"]],
    ),
]


@each("name, names, stored, parsed", *GOLDEN)
def test_file_content_is_read_back(
    name: str, names: tuple[str, str, str], stored: list[list[str]], parsed: list[list[str]] | None
) -> None:
    published = load_one(name)
    assert (published.judge, published.protocol, published.data) == names
    assert published.rules == (("stored", "parsed") if parsed else ("stored",)) == tuple(published.rows)
    assert list_verdicts(published.rows["stored"]) == stored
    if parsed:
        assert list_verdicts(published.rows["parsed"]) == parsed


@each("published", *replay.load(str(DATA)))
def test_rows_are_plain_comparisons_of_people(published: PublishedRun) -> None:
    for rule, rows in published.rows.items():
        assert [row.case for row in rows] == [row.case for row in published.rows["stored"]], rule
        assert len({row.case for row in rows}) == len(rows)
        for row in rows:
            assert (row.design, row.attack, row.target, row.excluded) == ("people", "none", None, None)
            assert (row.keys, row.tokens) == ((), ())
            assert (row.judge, row.protocol, row.data) == (published.judge, published.protocol, published.data)
            assert row.shown in {("a", "b"), ("a",), ("b",)}
            assert len(row.shown) == len(row.judgments)
            assert row.a != row.b
            for judgment in row.judgments:
                assert judgment.read == "text"
                assert (judgment.failure is None) == (judgment.preferred is not None)
                assert judgment.probabilities is None or sum(judgment.probabilities) == 1.0
            if case := published.cases.get(row.case):
                assert row.cluster == case.cluster
                assert {row.a.author, row.b.author} == {response.author for response in case.responses}


def test_llmbar_reports_more_than_the_winners() -> None:
    published = load_one(f"{LLMBAR}/Reference/result.json")
    assert published.convention == "llmbar"
    assert published.statistics == {"correct_False": "2 / 3 = 66.66666666666666%"}
    # The first stage makes one call, the second one call per order.
    assert (published.calls, published.ties, published.notes) == (3, False, ())
    assert [row.label for row in published.rows["stored"]] == ["a", "b", "a"]
    assert [row.case for row in published.rows["parsed"]] == ["item-0001", "item-0002", "item-0003"]
    raw = (DATA / LLMBAR / "Reference" / "result.json").read_bytes()
    assert published.sha256 == hashlib.sha256(raw).hexdigest()
    rated = load_one(f"{LLMBAR}/Rating/result.json")
    assert (rated.calls, rated.statistics) == (2, {})
    assert "rated once" in rated.notes[0]


def test_pairs_include_the_texts_beside_them() -> None:
    published = load_one("pairs")
    rows = {row.case: row for row in published.rows["stored"]}
    known = published.cases["question-1-turn-2-ant-vs-bee"]
    assert known.prompt == ("Name a colour.", "Another.")
    assert [response.turns for response in known.responses] == [("Red.", "Blue."), ("A dog.", "A cat.")]
    # An empty turn is an answer; a model without a file has no answer, and its pairs cluster by question.
    assert published.cases["question-2-turn-2-ant-vs-bee"].responses[1].turns == ("3", "")
    assert "question-1-turn-2-ant-vs-cow" not in published.cases
    assert rows["question-1-turn-2-ant-vs-cow"].cluster == known.cluster
    assert {row.subset for row in rows.values()} == {"writing", "math"}
    assert published.source == str(DATA / "pairs" / "judgments" / "judge-7B" / "pairwise")
    assert published.ties


def test_pairs_without_their_benchmark_cluster_by_question(tmp_path: Path) -> None:
    there = tmp_path / "judgments" / "j" / "pairwise"
    there.mkdir(parents=True)
    name = "bee_vs_ant.jsonl"
    (there / name).write_bytes((DATA / "pairs" / "judgments" / "judge-7B" / "pairwise" / name).read_bytes())
    (published,) = replay.load(str(there / name))
    assert not published.cases
    assert [row.cluster for row in published.rows["stored"]] == ["1", "2"]
    assert list_verdicts(published.rows["stored"]) == [["a", "a"], ["a", "tie"]]
    (there / name).rename(tmp_path / name)
    (published,) = replay.load(str(tmp_path / name))
    assert (published.judge, published.protocol, published.data) == (tmp_path.name, "replay", name)


def test_fastchat_gives_one_run_per_judge() -> None:
    published = load_one("fastchat")
    assert (published.judge, published.protocol, published.data) == ("gpt-x", "pair", "colours")
    # Rows keep the order of the file, whatever their template; a repeated pair does not count.
    assert [row.case for row in published.rows["stored"]] == PAIRS
    # The last row has bee as model_1.
    assert list_verdicts(published.rows["stored"]) == [["a", "a"], ["b", "tie"], ["error", "b"]]
    assert list_verdicts(published.rows["parsed"]) == [["a", "a"], ["b", "tie"], ["no verdict", "b"]]
    assert published.notes == ("left out: 1 more judgments of pairs that are judged twice (the first one counts)",)


@each(
    "templates, runs",
    (("pair-v2", "pair-math-v1-multi-turn"), {("gpt-x", "pair"): 3}),
    (("pair", "pair-v2"), {("gpt-x", "pair"): 3}),
    (("paired-v2", "pair-v2"), {("gpt-x", "paired"): 2, ("gpt-x", "pair"): 1}),
    (("single-v1", "pair-v2"), {("gpt-x", "single"): 2, ("gpt-x", "pair"): 1}),
    (("-v2", "pair"), {("gpt-x", "-v2"): 2, ("gpt-x", "pair"): 1}),
)
def test_templates_with_one_first_word_are_one_protocol(
    tmp_path: Path, templates: tuple[str, str], runs: dict[tuple[str, str], int]
) -> None:
    text = (DATA / FASTCHAT).read_text(encoding="utf-8")
    assert {json.loads(line)["judge"][1] for line in text.splitlines()} == {"pair-v2", "pair-v2-multi-turn"}
    for number, template in enumerate(("pair-v2-multi-turn", "pair-v2")):
        text = text.replace(f'"{template}"', f'"<{number}>"')
    for number, template in enumerate(reversed(templates)):
        text = text.replace(f'"<{number}>"', f'"{template}"')
    path = tmp_path / "x_pair.jsonl"
    path.write_text(text, encoding="utf-8")
    assert {(one.judge, one.protocol): len(one.rows["stored"]) for one in replay.load(str(path))} == runs


def test_judges_in_one_fastchat_file_are_separated(tmp_path: Path) -> None:
    path = tmp_path / "x_pair.jsonl"
    path.write_text((DATA / FASTCHAT).read_text(encoding="utf-8").replace('"gpt-x"', '"other"', 1), encoding="utf-8")
    runs = replay.load(str(path))
    assert [(one.judge, one.protocol, len(one.rows["stored"])) for one in runs] == [
        ("other", "pair", 1),
        ("gpt-x", "pair", 2),
    ]


def test_judgebench_has_labels_and_marks_non_decisions() -> None:
    published = load_one(GOLDEN[3][0])
    assert [row.label for row in published.rows["stored"]] == ["a", "b", "a", "b"]
    assert {row.subset for row in published.rows["stored"]} == {"livebench-math"}
    assert published.notes == ("no verdict: 1 decisions that are none of A>B, B>A, A=B",)
    assert published.ties
    assert not load_one(GOLDEN[4][0]).ties


def test_reife_has_no_labels_and_one_order_for_one_file() -> None:
    published = load_one(GOLDEN[5][0])
    assert {row.label for row in published.rows["stored"]} == {None}
    assert {row.shown for row in published.rows["stored"]} == {("a", "b")}
    assert load_one(GOLDEN[5][0].replace(".jsonl", "_swap.jsonl")) == published
    assert [row.shown for row in load_one(GOLDEN[7][0]).rows["parsed"]] == [("b",)]
    assert [row.shown for row in load_one(GOLDEN[6][0]).rows["stored"]] == [("a",)] * 3
    # Equal votes, one of which was drawn.
    assert load_one(GOLDEN[6][0]).ties
    assert not published.ties


def test_reife_answers_about_renamed_outputs_are_not_parsed(tmp_path: Path) -> None:
    text = (DATA / GOLDEN[7][0]).read_text(encoding="utf-8")
    path = tmp_path / "colours.m.p_swap.jsonl"
    path.write_text(text.replace("# Output (a):\\nRed.", "# Output (a):\\nA dog."), encoding="utf-8")
    (published,) = replay.load(str(path))
    assert published.rules == ("stored",)


@each(
    "question, texts, parsed",
    ("vanilla", ("Output (a)", "Output (a)"), ["a", "b"]),
    ("skywork_critic", ("[[B]]", "[[B]]"), ["b", "a"]),
    ("compass_judger", ("[[A=B]]", "My final verdict is: [[B>>A]]"), ["tie", "a"]),
    ("arena_hard", ("[[A>B]] or [[A=B]], who knows", "“[[A=B]]” is what it says."), ["no verdict", "no verdict"]),
    ("prometheus_2", ("[RESULT] A", "[RESULT] B"), None),
    ("auto_j", ("So, the final decision is Response 1.", "So, the final decision is Tie."), None),
    ("vanilla", ("Output (a)", None), None),
)
def test_judgebench_answers_are_parsed_in_the_requested_format(
    tmp_path: Path, question: str, texts: tuple[str, str | None], parsed: list[str] | None
) -> None:
    row = {
        "pair_id": "p",
        "source": "s",
        "question": "1+1?",
        "response_model": "m",
        "response_A": "It is 2.",
        "response_B": "It is 3.",
        "label": "A>B",
        "judge_name": question,
        "judgments": [{"judgment": {"judge_model": "j", "response": text}, "decision": "A>B"} for text in texts],
    }
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (published,) = replay.load(str(path))
    assert list_verdicts(published.rows["stored"]) == [["a", "b"]]
    assert ("parsed" in published.rules) == (parsed is not None)
    if parsed:
        assert list_verdicts(published.rows["parsed"]) == [parsed]


def test_mismatched_reife_files_are_reported(tmp_path: Path) -> None:
    name = "colours.m.p.jsonl"
    lines = (DATA / GOLDEN[5][0]).read_text(encoding="utf-8").splitlines()
    (tmp_path / name).write_text("\n".join(lines[:2]), encoding="utf-8")
    other = lines[2].replace('"response": [{"text": "Neither."}]', '"response": [{"winner": 1}]')
    (tmp_path / "colours.m.p_swap.jsonl").write_text("\n".join([lines[0], other]), encoding="utf-8")
    (published,) = replay.load(str(tmp_path))
    assert list_verdicts(published.rows["stored"]) == [["a", "a"], ["b"], ["no verdict"]]
    assert [row.shown for row in published.rows["stored"]] == [("a", "b"), ("a",), ("b",)]
    assert published.rules == ("stored",)
    assert published.notes == (
        "one order only: 2 of 3 pairs are in one of the two files only",
        "not parsed: 1 answers are no single text about Output (a) and Output (b)",
    )
    (tmp_path / name).rename(tmp_path / "x.jsonl")
    (published,) = replay.load(str(tmp_path / "x.jsonl"))
    assert (published.judge, published.protocol, published.data) == (tmp_path.name, "replay", "x.jsonl")
