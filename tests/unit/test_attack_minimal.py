"""Test the smallest flips of a run: the stored record, its reproducibility, and the output."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import damage_file, finish, set_up, small
from command_result import Run, fits
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.backend import Batch
from distract.core.errors import BackendError, DataError
from distract.core.printable import line
from distract.core.records import Edit, Reply, Request, apply_edits
from distract.core.runs import LoadedRun, load
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend, make_planted
from distract.studies.attack import session
from distract.studies.attack.minimal.alignment import match_words, settle_edges
from distract.studies.attack.minimal.changed_words import FlipWord, count_words, describe_edits
from distract.studies.attack.minimal.edits import find_edits, group_edits

RULES = ("attack", "--judge", "planted:bold", "--generator", "rules", "--measure", "flip_rate")
ONE = (*RULES, "--protocol", "pairwise", "--attack", "assertiveness", "--limit", "4")
FILES = ("run.json", "rows.jsonl", "rewrites.jsonl", "minimal.jsonl", "summary.json")


class Failing:
    """A planted judge that changes its behaviour after a number of requests."""

    def __init__(self, most: int | None = None, instead: Callable[[], Reply] = Reply) -> None:
        self._inner, self._most, self._instead = make_planted("bold"), most, instead
        self.identity: Mapping[str, str] = self._inner.identity
        self.reads_slots, self.asked = True, 0

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for index in sorted(wanted):
            self.asked += 1
            if self._most is not None and self.asked > self._most:
                yield [(index, self._instead())]
            else:
                yield from self._inner.reply(requests, frozenset([index]))


def run_attack(
    judge: Failing | ScriptedBackend, out: Path, store: Path, minimal: int = 2, limit: int = 4
) -> tuple[LoadedRun, Tally]:
    selected = session.select(
        data="tweakset", attacks=("assertiveness",), measures=("flip_rate",), generator="rules", limit=limit
    )
    job, tally = session.prepare(selected, set_up("planted:bold", judge, out, ["pairwise"]), minimal), Tally()
    return finish(job, store, tally).run, tally


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    """A run with two smallest flips; tests must not change it."""
    folder = tmp_path_factory.mktemp("finished")
    return run_attack(Failing(), folder / "r", folder / "s")[0]


def copy_run(run: LoadedRun, to: Path) -> Path:
    to.mkdir(parents=True)
    for file in run.path.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def test_document_lists_the_smallest_flips_and_their_words(finished_run: LoadedRun) -> None:
    document = json.loads(finished_run.summary or "")["minimal"]
    assert len(document["flips"]) == len(finished_run.minimal or ()) == 2
    for flip, record in zip(document["flips"], finished_run.minimal or (), strict=True):
        assert flip == {
            "case": record.case.id,
            "protocol": "pairwise",
            "rule": None,
            "attack": "assertiveness",
            "rewritten": record.rewritten,
            "other": record.other,
            "edits": [{"removed": edit.old, "added": edit.new} for edit in record.edits],
            "of": record.of,
            "comparisons": record.comparisons,
            "requests": record.requests,
            "invalid": 0,
            "minimal": True,
        }
        assert 0 < len(flip["edits"]) < flip["of"]
        assert apply_edits(record.original, record.edits) == record.turns
    # A second count: each word once per flip.
    words = Counter[tuple[str, str]]()
    for flip in document["flips"]:
        for change in ("added", "removed"):
            texts = [edit[change].split() for edit in flip["edits"]]
            words.update({(word.strip(",.").casefold(), change) for text in texts for word in text})
    assert {(word["word"], word["change"]): word["flips"] for word in document["words"]} == words


def test_each_smallest_flip_flips_and_no_smaller_one_does(finished_run: LoadedRun) -> None:
    from distract.core.plugin import Comparison
    from distract.core.records import Response
    from distract.data import datasets
    from distract.judging.judge import Judge
    from distract.judging.verdicts import outcome

    cases = {case.id: case for case in datasets.load("tweakset").cases}
    with Judge("bold", make_planted("bold"), store=finished_run.path.parent / "again") as judge:
        for one in finished_run.minimal or ():
            case = cases[one.case.id]
            assert one.case.prompt == case.prompt
            (other,) = (r for r in case.originals if r.author == one.other)

            def wins(turns: tuple[str, ...], one: Any = one, case: Any = case, other: Any = other) -> bool:
                response = Response(one.rewritten, turns, one.attack, one.severity)
                return outcome(judge.judgments(Comparison(case, response, other)), None) == "a"

            assert wins(one.turns)
            for edit in one.edits:
                assert not wins(apply_edits(one.original, [omitted for omitted in one.edits if omitted != edit]))


def test_rerun_writes_the_same_bytes(finished_run: LoadedRun, tmp_path: Path) -> None:
    again, tally = run_attack(Failing(), tmp_path / "r", finished_run.path.parent / "s")
    fresh, _ = run_attack(Failing(), tmp_path / "t", tmp_path / "s")
    for name in FILES:
        assert (again.path / name).read_bytes() == (fresh.path / name).read_bytes()
        assert (again.path / name).read_bytes() == (finished_run.path / name).read_bytes()
    assert (tally.made, tally.stored > 0) == (0, True)
    for one in (again, fresh):
        assert load(one.path) == one


def test_interrupted_search_pays_nothing_twice(tmp_path: Path) -> None:
    def breaks() -> Reply:
        raise BackendError("the model broke")

    without, tally = run_attack(Failing(), tmp_path / "plain", tmp_path / "first", minimal=0)
    broken = Failing(tally.made + 3, breaks)
    with pytest.raises(BackendError):
        run_attack(broken, tmp_path / "r", tmp_path / "s")
    left = load(tmp_path / "r")
    assert (left.flaw is None, len(left.rows), left.minimal) == (False, len(without.rows), ())
    resumed = Failing()
    done, _ = run_attack(resumed, tmp_path / "r", tmp_path / "s")
    whole = Failing()
    run_attack(whole, tmp_path / "whole", tmp_path / "t")
    assert tally.made + 3 + resumed.asked == whole.asked
    assert (done.path / "minimal.jsonl").read_bytes() == (tmp_path / "whole" / "minimal.jsonl").read_bytes()


def test_unanswered_search_stays_open_and_is_repeated(tmp_path: Path) -> None:
    _, tally = run_attack(Failing(), tmp_path / "plain", tmp_path / "first", minimal=0)
    silent = Failing(tally.made, lambda: Reply(failure="no reply: 503"))
    done, used = run_attack(silent, tmp_path / "r", tmp_path / "s")
    assert (done.minimal, used.unanswered > 0) == ((), True)
    assert (load(done.path).flaw, load(done.path).unanswered) == (None, True)
    done, _ = run_attack(Failing(), tmp_path / "r", tmp_path / "s")
    assert (len(done.minimal or ()), load(done.path).unanswered) == (2, False)


@each("damage", "emptied", "cut", "gone", "line dropped")
def test_damaged_run_never_counts_as_complete(finished_run: LoadedRun, tmp_path: Path, damage: str) -> None:
    path = copy_run(finished_run, tmp_path / "r") / "minimal.jsonl"
    damage_file(path, damage)
    assert "minimal.jsonl does not match its checksum" in (load(path.parent).flaw or "")


@each(
    "change",
    lambda record: record.pop("edits"),
    lambda record: record.update(edits=3),
    lambda record: record.update(edits=[]),
    lambda record: record.update(case="c1"),
    lambda record: record.update(more=1),
    lambda record: record["edits"][0].update(turn=7),
    lambda record: record["edits"][0].update(start="0"),
    lambda record: record["edits"][0].update(new="else"),
)
def test_invalid_record_is_named_by_its_line(
    finished_run: LoadedRun, tmp_path: Path, change: Callable[[Any], object]
) -> None:
    path = copy_run(finished_run, tmp_path / "r") / "minimal.jsonl"
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    change(second)
    path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"minimal\.jsonl:2: not a record of a run"):
        load(path.parent)


def test_run_without_minimal_stays_the_same(tmp_path: Path, finished_run: LoadedRun) -> None:
    plain, _ = run_attack(Failing(), tmp_path / "r", tmp_path / "s", minimal=0)
    assert plain.minimal is None
    assert "minimal" not in plain.parameters
    assert "minimal" not in json.loads(plain.summary or "")
    assert not (plain.path / "minimal.jsonl").exists()
    assert {**plain.parameters, "minimal": 2} == finished_run.parameters
    for name in ("rows.jsonl", "rewrites.jsonl"):
        assert (plain.path / name).read_bytes() == (finished_run.path / name).read_bytes()


def test_command_and_report_show_the_same(run: Run) -> None:
    ran = run(*ONE, "--minimal", "3", "--out", "r", "--verbose")
    assert ran.code == 0
    assert (
        "not in this estimate: the search afterwards for the smallest part that still flips, in at most 3 flips"
        in ran.err
    )
    assert "Words that flip this judge" in ran.out
    assert "beyond added 1/3" in ran.words
    assert '2 of 9 edits are enough: + "beyond question."; 14 judge calls' in ran.words
    assert ran.out == run("report", "r", "--verbose").out + "\nrun folder: r\n"
    as_json = run(*ONE, "--minimal", "3", "--out", "r", "--json")
    assert "no call is made" in as_json.err
    assert as_json.out == Path("r/summary.json").read_text(encoding="utf-8") == run("report", "r", "--json").out
    Path("r/manifest.json").unlink()
    assert run("report", "r", "--json").document["minimal"] == as_json.document["minimal"]
    assert run("report", "r", "--verbose").out == ran.out.removesuffix("\nrun folder: r\n")
    fits(ran.out)


def test_without_flips_there_is_nothing_to_explain(run: Run) -> None:
    fair = run("attack", "--judge", "planted:fair", *ONE[3:], "--minimal", "2", "--out", "r")
    assert (fair.code, "found no flip to explain" in fair.words) == (0, True)
    assert json.loads(Path("r/summary.json").read_text())["minimal"] == {"flips": [], "words": []}
    assert run(*ONE, "--minimal", "-1").code == 2


def test_protocols_take_turns_and_scores_follow_their_rule(run: Run) -> None:
    both = ("--protocol", "absolute", "--protocol", "pairwise", "--attack", "prolixity", "--limit", "3")
    result = run("attack", "--judge", "planted:longer", *RULES[3:], *both, "--minimal", "2", "--json")
    flips = result.document["minimal"]["flips"]
    assert sorted((flip["protocol"], flip["rule"]) for flip in flips) == [("absolute", "score"), ("pairwise", None)]


def test_data_location_is_recorded_verbatim_and_decides_nothing(run: Run, tmp_path: Path) -> None:
    case = {"id": "c", "prompt": "p", "responses": [{"author": a, "text": f"It might be {a}."} for a in "xy"]}
    Path("d.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    for spec in ("d.jsonl", "./d.jsonl", "native:d.jsonl"):
        assert run("attack", "--judge", "planted:bold", *RULES[3:], "--data", spec).code == 0
        (folder,) = Path(".distract/runs").iterdir()
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert record["source"]["responses"] == []
        assert str(tmp_path) not in json.dumps(record)
    assert record["source"]["data"] == "d.jsonl"  # a finished run is not written again


def test_hostile_texts_are_shown_without_effect(run: Run) -> None:
    names = {"x": "[red]x", "y": "[/]y"}
    texts = {
        "x": "It is certainly [bold]red[/bold].\x1b[2J",
        "y": "Perhaps it might be \x1b]0;t\x07 [blink]blue[/blink]\u202e, and I think that is probably so.",
    }
    case = {
        "id": "[link]c",
        "prompt": "[red]Which?\x1b[31m",
        "responses": [{"author": names[one], "text": texts[one]} for one in "xy"],
    }
    Path("d.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    result = run(*RULES, "--protocol", "pairwise", "--data", "d.jsonl", "--minimal", "4", "--out", "r")
    assert (result.code, "case [link]c, pairwise" in result.out) == (0, True)
    assert "enough" in result.out
    report = run("explain", "r", case["id"])
    assert report.code == 0
    assert "[red]Which?\\x1b[31m" in report.out
    for out in (result.out, report.out):
        fits(out)
        assert "\u202e" not in out


@each(
    "original, rewrite, expected",
    ("It is so.", "It is so.", ()),
    ("It might be so.", "It is so.", ('"might be" → "is"',)),
    ("It is so.", "It is definitely so.", ('+ "definitely"',)),
    ("Maybe it is so.", "it is so.", ('− "Maybe"',)),
    ("It is so.", "It was so!", ('"is" → "was"', '"." → "!"')),
    ("It  is", "It is", ("white space",)),
    ("It is [bold]so", "It is \x1b[1mso", ('"bold]so" → "1mso"', '+ "\\x1b"')),
)
def test_changes_are_described(original: str, rewrite: str, expected: tuple[str, ...]) -> None:
    assert sorted(describe_edits(find_edits([original], [rewrite]))) == sorted(expected)


def test_part_of_a_phrase_is_quoted_verbatim() -> None:
    edits = find_edits(["It might be so."], ["It is so."])
    assert describe_edits(edits[:1]) == ('− "might"',)
    assert describe_edits([edits[0], edits[2]]) == ('− "might"', '+ "is"')


def test_long_phrases_are_cut() -> None:
    (phrase,) = describe_edits([Edit(0, 0, 0, "word " * 40, "")])
    assert len(phrase) == 84
    assert phrase.endswith('word…"')
    assert describe_edits([Edit(0, 0, 3, "abcdef", "abc")], width=5) == ('"abc" → "abcd…"',)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_description_is_one_line(original: str, rewrite: str) -> None:
    for phrase in describe_edits(find_edits([original], [rewrite])):
        assert phrase == line(phrase)


def test_words_are_counted_once_per_flip() -> None:
    flips = [
        small("It might be so.", 'It IS "definitely" so, definitely.'),
        small("It might, so.", "It is so."),
        small("good", "**good**"),
    ]
    assert count_words(flips) == (
        FlipWord("is", "added", 2),
        FlipWord("**", "added", 1),
        FlipWord(",", "added", 1),
        FlipWord("definitely", "added", 1),
    )
    assert count_words([]) == ()


def test_replacement_counts_only_the_new_words() -> None:
    assert count_words([small("It might be so.", "It must be so.")]) == (FlipWord("must", "added", 1),)
    assert count_words([small("It might be so.", "It be so.")]) == (FlipWord("might", "removed", 1),)


def test_word_on_both_sides_of_a_change_is_not_counted() -> None:
    flip = replace(small("a b", "c d"), edits=(Edit(0, 0, 3, "is: so.", "so, it"),))
    assert count_words([flip]) == (FlipWord("is", "added", 1),)


ALPHABET = [
    "a",
    "b",
    "the",
    " ",
    "  ",
    "\n",
    "\t",
    ".",
    ",",
    "**",
    "'",
    "-",
    "1",
    "é",
    "\u0301",
    "字",
    "かな",
    "क",
    "ि",
]
HOSTILE = ["\ud800", "\x00", "\u2028", "\u200d", "\U0001f469", "\r\n", "_", "[[A]]", "<|im_end|>", "{output_2}"]

texts = st.lists(st.sampled_from(ALPHABET + HOSTILE), max_size=14).map("".join) | st.text(max_size=20)


def changes(original: str, rewrite: str) -> list[list[tuple[str, str]]]:
    """Pairs of old and new text, grouped by phrase."""
    return [[(edit.old, edit.new) for edit in phrase] for phrase in group_edits(find_edits([original], [rewrite]))]


@each(
    "original, rewrite, expected",
    ("It is so.", "It is so.", []),
    ("", "", []),
    # Equal numbers of words are replaced, and the punctuation stays.
    ("It might be, so.", "It would be, so.", [[("might", "would")]]),
    ("It may be so.", "It will become so.", [[("may", "will"), (" be", " become")]]),
    # Otherwise old words are removed and new ones added, each with the white space on one side.
    ("It might be so.", "It is so.", [[(" might", ""), (" be", ""), ("", " is")]]),
    ("Perhaps we think it.", "Now think it.", [[("", "Now "), ("Perhaps ", ""), ("we ", "")]]),
    ("it is so", "it is so, now and then", [[("", ","), ("", " now"), ("", " and"), ("", " then")]]),
    # Punctuation belongs to its word.
    ("it is so", "Definitely, it is so", [[("", "Definitely, ")]]),
    ("Certainly, it is so", "it is so", [[("Certainly, ", "")]]),
    ("so it is (or was) now", "so it is now", [[(" (or", ""), (" was)", "")]]),
    # Sentences and lines are added whole.
    ("It rains.", "It rains. So be it.", [[("", " So"), ("", " be"), ("", " it.")]]),
    ("The sun sets.", "The point. The sun sets.", [[("", "The "), ("", "point. ")]]),
    ("a\nb\nd", "a\nb\nc\nb\nd", [[("", "\nc"), ("", "\nb")]]),
    ("Say\nwhat it is\nnow", "Say\nthat\nnow", [[("\nwhat", ""), (" it", ""), (" is", ""), ("", "\nthat")]]),
    ("Say:\nwhat it is", "Say:\nthat is", [[("", "that "), ("what ", ""), ("it ", "")]]),
    ("one, the cat sat", "one, the dog ran, the cat sat", [[("", " the"), ("", " dog"), ("", " ran,")]]),
    ("x. y", "x. z. z", [[(" y", ""), ("", " z."), ("", " z")]]),
    # Markup, white space.
    ("very good", "**very** good", [[("", "**")], [("", "**")]]),
    ("a  b\n", "a b", [[("  ", " ")], [("\n", "")]]),
    ("", "Hello you", [[("", "Hello"), ("", " you")]]),
    ("gone now", "", [[("gone", ""), (" now", "")]]),
    # Scripts without spaces, and letters of several signs.
    ("这是好的。", "这是很好的！", [[("", "很")], [("。", "！")]]),
    ("हिन्दी भाषा", "हिन्दी की भाषा", [[("", " की")]]),
    ("don’t well-known 3.14", "do well-known 3.15", [[("don’t", "do")], [("3.14", "3.15")]]),
)
def test_edit_covers_a_word(original: str, rewrite: str, expected: list[list[tuple[str, str]]]) -> None:
    assert changes(original, rewrite) == expected


def test_edit_states_its_position() -> None:
    edits = find_edits(["Yes.", "It may be."], ["Yes.", "It is not."])
    assert edits == (Edit(1, 3, 6, "is", "may"), Edit(1, 6, 9, " not", " be"))
    assert apply_edits(["Yes.", "It may be."], edits[1:]) == ("Yes.", "It may not.")


def test_unequal_numbers_of_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="1 turns and 2: expected a rewrite with as many turns"):
        find_edits(["a"], ["a", "b"])


@given(st.lists(st.tuples(texts, texts), max_size=3))
def test_all_edits_give_the_rewrite_and_none_the_original(turns: list[tuple[str, str]]) -> None:
    original, rewrite = (tuple(pair[side] for pair in turns) for side in (0, 1))
    edits = find_edits(original, rewrite)
    assert apply_edits(original, edits) == rewrite
    assert apply_edits(original, ()) == original
    for edit in edits:
        assert original[edit.turn][edit.start : edit.end] == edit.old != edit.new
    for one, other in pairwise(edits):
        assert (one.turn, one.end) <= (other.turn, other.start)


@given(texts, texts, st.data())
def test_any_subset_of_edits_applies_in_any_order(original: str, rewrite: str, data: st.DataObject) -> None:
    edits = find_edits([original], [rewrite])
    subset = [edit for edit in edits if data.draw(st.booleans())]
    (text,) = apply_edits([original], subset)
    naive = original
    for edit in reversed(subset):
        naive = naive[: edit.start] + edit.new + naive[edit.end :]
    assert text == naive
    if len({edit.start for edit in subset}) == len(subset):
        assert apply_edits([original], data.draw(st.permutations(subset))) == (text,)


@given(texts, texts)
def test_phrases_join_adjacent_edits(original: str, rewrite: str) -> None:
    edits = find_edits([original], [rewrite])
    grouped = group_edits(edits)
    assert tuple(edit for phrase in grouped for edit in phrase) == edits
    for one, other in pairwise(grouped):
        assert one[-1].end < other[0].start


words = st.lists(st.sampled_from("abc"), max_size=12)


@given(words, words)
def test_as_many_words_match_as_possible(old: list[str], new: list[str]) -> None:
    matches = match_words(old, new)
    assert [old[i] for i, _ in matches] == [new[j] for _, j in matches]
    for side in (0, 1):
        places = [pair[side] for pair in matches]
        assert places == sorted(set(places))
    assert len(matches) == common_length(old, new)


def common_length(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the longest common subsequence, by dynamic programming."""
    above = [0] * (len(new) + 1)
    for word in old:
        row = [0]
        for column, other in enumerate(new):
            row.append(above[column] + 1 if word == other else max(row[column], above[column + 1]))
        above = row
    return above[-1]


@given(st.lists(st.sampled_from(["a", "b", "."]), max_size=12), st.lists(st.sampled_from(["a", "b", "."]), max_size=12))
def test_settling_keeps_matches_and_merges_no_changes(old: list[str], new: list[str]) -> None:
    ends = ["", *old, ""], ["", *new, ""]
    same = [(0, 0), *((i + 1, j + 1) for i, j in match_words(old, new)), (len(old) + 1, len(new) + 1)]
    texts = " ".join(old), " ".join(new)
    spans = tuple(
        [(0, 0), *((2 * at, 2 * at + 1) for at in range(len(words))), (len(text),) * 2]
        for words, text in zip((old, new), texts, strict=True)
    )
    settled = settle_edges(texts, (spans[0], spans[1]), same)
    assert [ends[0][i] for i, _ in settled] == [ends[1][j] for _, j in settled] == [ends[0][i] for i, _ in same]
    for matches in (settled, same):
        assert all(i < k and j < m for (i, j), (k, m) in pairwise(matches))
    counts = [sum((k - i, m - j) != (1, 1) for (i, j), (k, m) in pairwise(matches)) for matches in (settled, same)]
    assert counts[0] == counts[1]


@each("old, new", ("x " * 3000, "x y " * 2500), ("x y " * 1500, "x z " * 1500), ("z " + "x " * 3000, "x " * 6000))
def test_repeated_words_are_handled(old: str, new: str) -> None:
    assert apply_edits([old], find_edits([old], [new])) == (new,)
