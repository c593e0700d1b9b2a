"""Test formats of published outputs on hand-written files, by stored winner and by stored text."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given, strategies as st
from loops import each

from distract.core.records import PASS_MARK, Case, Judgment, Outcome, Response, Row, Side
from distract.judging import published as replay
from distract.judging.published import PublishedRun, attach_labels
from distract.studies.meta.measures import comparison_unit

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
    (f"{LLMBAR}/Reference/result.json", ("judge-1", "Reference", "Colours"),
     [["a", "a"], ["b", "no verdict"], ["b", "b"]],
     # The last answer of the swapped order is truncated before its verdict, but its winner is stored.
     [["a", "a"], ["b", "no verdict"], ["b", "truncated"]]),
    (f"{LLMBAR}/Rating/result.json", ("judge-1", "Rating", "Colours"), [["b", "a"]], None),
    # Letters are slots: A under both orders is once ant and once cow. bee stands first in the file, ant in a row.
    ("pairs", ("judge-7B", "pairwise", "pairs"), [["a", "b"], ["error", "a"], ["a", "a"], ["a", "tie"]],
     [["a", "b"], ["no verdict", "a"], ["a", "a"], ["a", "tie"]]),
    (f"{JUDGEBENCH},judge_name=arena_hard,judge_model=lab_judge-1.jsonl",
     ("lab/judge-1", "arena_hard", "judgebench writer-1"),
     [["a", "a"], ["tie", "no verdict"], ["no verdict", "no verdict"], ["no verdict"]],
     [["a", "a"], ["tie", "no verdict"], ["a", "no verdict"], ["b"]]),
    (f"{JUDGEBENCH},judge_name=reward_model,judge_model=reward-1.jsonl",
     ("reward-1", "reward_model", "judgebench writer-1"), [["a", "a"]], None),
    # Verdicts are not mapped back, and the swapped file orders its rows differently.
    (f"{REIFE}.llama-3.1-8b.base_pairwise.pairwise_vanilla.jsonl",
     ("llama-3.1-8b", "base_pairwise.pairwise_vanilla", "colours"),
     [["a", "a"], ["b", "a"], ["no verdict", "a"]], [["a", "a"], ["b", "a"], ["no verdict", "a"]]),
    (f"{REIFE}.gpt-4.protocol_vote.majority_vote.jsonl",
     ("gpt-4", "protocol_vote.majority_vote", "colours"), [["a"], ["tie"], ["a"]], None),
    (f"{REIFE}.gpt-4.pairwise_chateval.pairwise_chateval_swap.round_1.jsonl",
     ("gpt-4", "pairwise_chateval.pairwise_chateval.round_1", "colours"), [["b"]], [["b"]]),
]  # fmt: skip


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
    assert [(one.judge, len(one.rows["stored"])) for one in runs] == [("other", 1), ("gpt-x", 2)]
    assert {one.protocol for one in runs} == {"pair"}


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
    texts_shown = {"question": "1+1?", "response_A": "It is 2.", "response_B": "It is 3."}
    names = {"pair_id": "p", "source": "s", "response_model": "m", "label": "A>B", "judge_name": question}
    answers = [{"judgment": {"judge_model": "j", "response": text}, "decision": "A>B"} for text in texts]
    row = {**texts_shown, **names, "judgments": answers}
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


def case(name: str, prompt: str, first: tuple[str, str], second: tuple[str, str], preferred: str | None) -> Case:
    responses = tuple(Response(author, (text,)) for author, text in (first, second))
    return Case(name, (prompt,), responses, preferred, source="people")


def published(*rows: Row, cases: tuple[Case, ...] = ()) -> PublishedRun:
    known = {one.id: one for one in cases}
    return PublishedRun("j", "p", "d", ("stored",), {"stored": rows}, True, "f", "0", known, "", {}, None, ("a note",))


def join(one: Case, *labelled_cases: Case) -> PublishedRun:
    """A run on one case, joined to a data set."""
    return attach_labels(published(row(one.id), cases=(one,)), {"set": labelled_cases} if labelled_cases else {})


def labelled(first: str = "Red.", second: str = "A dog.", preferred: str | None = "x", name: str = "q") -> Case:
    return case(name, "Name a colour.", ("x", first), ("y", second), preferred)


def row(name: str, a: str = "output_1", b: str = "output_2", label: Outcome | None = None) -> Row:
    judgment = Judgment("a", (1.0, 0.0, 0.0), read="text")
    return Row(name, name, "people", "p", "j", "none", Side(a), Side(b), None, (judgment,), label=label, data="d")


def only_row(run: PublishedRun) -> Row:
    ((row,),) = run.rows.values()
    return row


COLOURS = case("item-0001", "Name a colour.", ("output_1", "Red."), ("output_2", "A dog."), None)
NAMED = "texts-4e37daefbf7dd15f"
"""The name of a comparison by its texts: half a SHA-256. It is pinned, because stored names must not change."""


@each(
    "labelled_case, label",
    (labelled(), "a"),
    (labelled(preferred="y"), "b"),
    (labelled("A dog.", "Red."), "b"),
    (case("q", "Name a colour.", ("output_2", "Red."), ("output_1", "A dog."), "output_1"), "b"),
    (labelled(preferred="tie"), "tie"),
    (labelled(preferred=None), None),
)
def test_texts_identify_a_label_in_either_order(labelled_case: Case, label: str | None) -> None:
    joined_run = join(COLOURS, labelled_case)
    joined = only_row(joined_run)
    assert (joined.label, joined.data, joined.subset, joined.cluster) == (label, "set", "people", labelled_case.cluster)
    # The case has the name of the data set and the order of the row, so the judgments are unchanged.
    assert joined.case == "q"
    authors = {response.text: response.author for response in labelled_case.responses}
    assert (joined.a, joined.b) == (Side(authors["Red."]), Side(authors["A dog."]))
    assert joined.judgments == row("item-0001").judgments
    assert (joined_run.cases, joined_run.notes) == ({"q": labelled_case}, ("a note",))


@each(
    "labelled_case",
    case("item-0001", "Name a color.", ("output_1", "Red."), ("output_2", "A dog."), "output_1"),
    case("item-0001", "Name a colour.", ("output_1", "Red. "), ("output_2", "A dog."), "output_1"),
    case("item-0001", "Name a colour.", ("output_1", "Red."), ("output_2", "Red."), "output_1"),
)
def test_known_texts_rule_out_matching_by_id(labelled_case: Case) -> None:
    joined_run = join(COLOURS, labelled_case)
    # The name derives from the texts, as without any data set; only the note mentions the data sets.
    assert joined_run == replace(join(COLOURS), notes=("a note", "1 row is in none of the data sets"))
    named_row = replace(row(NAMED), a=Side("text-2"), b=Side("text-1"), cluster="item-0001")
    assert joined_run.rows == {"stored": (named_row,)}
    # So do the authors of its texts, which a report shows.
    first, second = COLOURS.responses
    renamed = (replace(first, author="text-2"), replace(second, author="text-1"))
    assert joined_run.cases == {NAMED: replace(COLOURS, responses=renamed)}


ALONE = Case("c1", ("Hi.",), (Response("x", ("Hello.",)),))


@each("passed", True, False, None)
@each("is_known", True, False)
def test_verdict_on_one_response_gets_its_label(passed: bool | None, is_known: bool) -> None:
    """With texts, a response is found whatever its names; without, by the id of its case and its author."""
    others = [replace(ALONE, id="c2", responses=(Response("x", ("Bye.",)),), passed=True), COLOURS]
    judged = replace(row("c1", "x", PASS_MARK), design="pass")
    texts = (ALONE,) if is_known else ()
    author = "model" if is_known else "x"
    labelled_case = replace(ALONE, responses=(Response(author, ("Hello.",)),), passed=passed)
    joined_run = attach_labels(published(judged, cases=texts), {"set": [*others, labelled_case]})
    label: Outcome | None = None if passed is None else "a" if passed else "b"
    named = replace(judged, cluster=labelled_case.cluster, prompt_group=labelled_case.prompt_group)
    assert only_row(joined_run) == replace(named, a=Side(author), label=label, data="set", subset="")


def test_verdict_on_an_unknown_response_keeps_the_pass_mark() -> None:
    judged = replace(row("c1", "x", PASS_MARK, "b"), design="pass")
    joined_run = attach_labels(published(judged, cases=(ALONE,)), {"set": [COLOURS]})
    joined = only_row(joined_run)
    assert (joined.a, joined.b, joined.label, joined.case[:6]) == (Side("text"), Side(PASS_MARK), "b", "texts-")
    (renamed,) = joined_run.cases.values()
    assert renamed.responses == (Response("text", ("Hello.",)),)


def test_without_texts_the_id_and_both_authors_match() -> None:
    authors = {"c1": ("y", "x"), "c2": ("y", "z")}
    labelled_cases = [case(name, "Hi.", (a, "Hello."), (b, "Go away."), "y") for name, (a, b) in authors.items()]
    rows = (row("c1", "x", "y"), row("c2", "x", "y"), row("c3", "x", "y"))
    joined_run = attach_labels(published(*rows), {"set": labelled_cases})
    assert [(one.label, one.data) for one in joined_run.rows["stored"]] == [("b", "set"), (None, "d"), (None, "d")]
    assert joined_run.notes[1:] == ("2 rows are in none of the data sets",)
    assert joined_run.cases == {"c1": labelled_cases[0]}


def test_only_the_name_separates_one_id_in_several_data_sets() -> None:
    labelled_case = case("item-0001", "Hi.", ("output_1", "Hello."), ("output_2", "Go away."), "output_1")
    other = replace(labelled_case, preferred="output_2")
    for name, expected in (("d", ("a", "d")), ("f", (None, "d"))):
        joined_run = attach_labels(published(row("item-0001")), {"e": [other], name: [labelled_case]})
        assert (only_row(joined_run).label, only_row(joined_run).data) == expected
    assert joined_run.notes[1:] == ("1 row is in none of the data sets",)


def test_label_is_kept() -> None:
    joined = only_row(attach_labels(published(row("item-0001", label="b"), cases=(COLOURS,)), {"set": [labelled()]}))
    assert (joined.label, joined.data) == ("b", "set")
    before = published(row("c1", label="tie"))
    assert attach_labels(before, {"set": [labelled(name="c1")]}) == before


def test_different_labels_are_noted() -> None:
    labelled_cases = [labelled(preferred=None, name="q1"), labelled(name="q2"), labelled("A dog.", "Red.", name="q3")]
    joined_run = join(COLOURS, *labelled_cases[:2])
    assert (only_row(joined_run).label, joined_run.notes) == ("a", ("a note",))
    joined_run = join(COLOURS, *labelled_cases)
    notes = ("a note", "1 row is in the data sets with several labels (the first one counts)")
    assert (only_row(joined_run).label, joined_run.notes) == ("a", notes)


def test_equal_texts_have_one_name_and_are_separated_by_their_authors() -> None:
    same = case("item-0001", "Hi.", ("output_1", "Hi."), ("output_2", "Hi."), None)
    for first, second, label in (("output_2", "output_1", "a"), ("x", "y", "b")):
        preferred = "output_1" if label == "a" else "y"
        assert only_row(join(same, case("q", "Hi.", (first, "Hi."), (second, "Hi."), preferred))).label == label
    joined = only_row(join(same))
    assert joined.case.startswith("texts-")
    assert (joined.a, joined.b) == (Side("output_1"), Side("output_2"))


def test_reife_gets_the_labels_of_a_data_set() -> None:
    (run,) = replay.load(str(DATA / "reife" / "colours.llama-3.1-8b.base_pairwise.pairwise_vanilla.jsonl"))
    labelled_cases = [
        case("item-0001", "Name a colour.", ("output_1", "A dog."), ("output_2", "Red."), "output_2"),
        case("item-0002", "Say yes.", ("output_1", "No."), ("output_2", "Yes."), "output_2"),
    ]
    joined_run = attach_labels(run, {"colours": labelled_cases})
    for rule in run.rules:
        assert [one.label for one in joined_run.rows[rule]] == ["a", "b", None]
        assert [one.judgments for one in joined_run.rows[rule]] == [one.judgments for one in run.rows[rule]]
    assert joined_run.notes == ("1 row is in none of the data sets",)


def test_unmatched_pair_keeps_its_name() -> None:
    before = published(row("c1", "x", "y"))
    assert attach_labels(before, {}) == before
    # One of the two texts is not sufficient for a name.
    half = published(row("item-0001", "output_1", "else"), cases=(COLOURS,))
    assert attach_labels(half, {}) == half


def test_repeated_question_is_a_separate_comparison() -> None:
    copies = [replace(COLOURS, id=f"item-000{number}") for number in (1, 2, 3, 4)]
    copies[3] = replace(copies[3], prompt=("Hi.",))
    before = published(*(row(one.id) for one in copies), cases=tuple(copies))
    first, second, third, fourth = attach_labels(before, {}).rows["stored"]
    assert [one.case for one in (first, second, third)] == [NAMED, f"{NAMED}~2", f"{NAMED}~3"]
    assert fourth.case.startswith("texts-")
    assert fourth.case.partition("~") != (NAMED, "", "")
    rows = attach_labels(before, {"set": [labelled()]}).rows["stored"]
    assert [one.case for one in rows] == ["q", "q~2", "q~3", fourth.case]
    assert [one.label for one in rows] == ["a", "a", "a", None]


@each("data", {}, {"set": [labelled()]})
def test_repeated_question_in_swapped_order_is_separate(data: dict[str, list[Case]]) -> None:
    turned = case("item-0002", "Name a colour.", ("output_1", "A dog."), ("output_2", "Red."), None)
    joined_run = attach_labels(published(row("item-0001"), row("item-0002"), cases=(COLOURS, turned)), data)
    assert len({comparison_unit(one)[0] for one in joined_run.rows["stored"]}) == 2


def test_all_rules_of_a_run_give_a_comparison_the_same_name() -> None:
    cases = (COLOURS, replace(COLOURS, id="item-0002"))
    before = published(row("item-0001"), row("item-0002"), cases=cases)
    before = replace(before, rules=("stored", "parsed"), rows={**before.rows, "parsed": before.rows["stored"]})
    joined_run = attach_labels(before, {})
    assert [one.case for one in joined_run.rows["stored"]] == [NAMED, f"{NAMED}~2"]
    assert joined_run.rows["stored"] == joined_run.rows["parsed"]


def test_turn_boundaries_are_part_of_the_texts() -> None:
    def case_name(*texts: tuple[str, ...]) -> str:
        prompt, first, second = texts
        responses = (Response("output_1", first), Response("output_2", second))
        return only_row(join(Case("item-0001", prompt, responses, None))).case

    several = [
        (("a", "b"), ("c", "d"), ("e", "f")),
        (("ab",), ("c", "d"), ("e", "f")),
        (("a", "b"), ("cd",), ("e", "f")),
        (("a", "b"), ("c", "d"), ("ef",)),
        (("a", "b"), ("c", ""), ("de", "f")),
        (("a", "b"), ("e", "d"), ("c", "f")),
        (("a",), ("b", "c"), ("d", "e")),
    ]
    assert len({case_name(*texts) for texts in several}) == len(several)


WORDS = st.sampled_from(["Red.", "Blue.", "A dog.", ""])


@given(
    texts=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5, unique_by=lambda pair: frozenset(pair)),
    data=st.data(),
)
def test_files_of_the_same_texts_are_joined_in_any_order(texts: list[tuple[str, str]], data: st.DataObject) -> None:
    def case_names(pairs: list[tuple[str, str]]) -> dict[object, frozenset[tuple[str, str]]]:
        """The authors and texts of each unit."""
        cases = [
            case(f"item-{number}", "Hm?", ("output_1", first), ("output_2", second), None)
            for number, (first, second) in enumerate(pairs)
        ]
        rows = attach_labels(published(*(row(one.id) for one in cases), cases=tuple(cases)), {}).rows["stored"]
        return {
            comparison_unit(one)[0]: frozenset({(one.a.author, first), (one.b.author, second)})
            for one, (first, second) in zip(rows, pairs, strict=True)
        }

    whole = case_names(texts)
    assert len(whole) == len(texts)
    chosen = data.draw(st.lists(st.sampled_from(texts), unique=True, min_size=1))
    turned = [pair[::-1] if data.draw(st.booleans()) else pair for pair in chosen]
    assert case_names(turned).items() <= whole.items()


@given(
    texts=st.lists(st.tuples(WORDS, WORDS, st.sampled_from(["x", "y", "tie", None])), min_size=1, max_size=5),
    turned=st.booleans(),
)
def test_response_order_of_a_data_set_does_not_matter(texts: list[tuple[str, str, str | None]], turned: bool) -> None:
    ours, labelled_cases, expected = [], [], []
    for number, (first, second, preferred) in enumerate(texts):
        ours.append(case(f"o{number}", str(number), ("output_1", first), ("output_2", second), None))
        result = case(f"t{number}", str(number), ("x", first), ("y", second), preferred)
        swap = turned and first != second
        labelled_cases.append(replace(result, responses=result.responses[::-1]) if swap else result)
        expected.append({"x": "a", "y": "b", "tie": "tie", None: None}[preferred])
    run = published(*(row(one.id) for one in ours), cases=tuple(ours))
    found_run = attach_labels(run, {"set": labelled_cases[::-1]})
    assert [one.label for one in found_run.rows["stored"]] == expected
    assert attach_labels(found_run, {"set": labelled_cases}).rows == found_run.rows
