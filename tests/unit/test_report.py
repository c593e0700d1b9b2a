"""Test that reports are safe, fit 80 columns, and match the figures."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from builders import row, run_parameters, verdict
from command_result import Run, check_refusal, fits, print_parts
from gate_builders import make_run
from hypothesis import given, strategies as st
from loops import each
from pages import PAGES
from test_explain import change_record, write_run

from distract.core import errors, registry
from distract.core.printable import bar, clean_text, count, interval, line, p_value, percent, share_hint
from distract.core.records import Row
from distract.models.catalogue import catalogue
from distract.models.opener import _SERVERS, translate_name
from distract.report.blocks import Table, TableRow
from distract.report.glossary import empty_reason
from distract.report.phrases import counted_cells
from distract.stats.figure import Figure
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.study import _SHARED, document
from distract.studies.attack.view import run_report
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.view import gate_report

A, B, TIE = verdict("a"), verdict("b"), verdict("tie")


def measure(parameters: Mapping[str, Any], rows: Sequence[Row]) -> AttackResult:
    """The result of a run with these rows and without rewrites."""
    sums = registry.get_study("attack").measures(parameters)
    sums.add(rows, ())
    result: AttackResult = sums.result()
    return result


def render(rows: list[Row], attacks: list[str], width: int = 80, verbose: bool = True, **changes: object) -> str:
    parameters: dict[str, Any] = {
        **run_parameters("d\x07.jsonl", {"pairwise": ()}),
        "judge": "[bold red]:m:[/] \x1b[31mred",
        "data": {"name": "d\x07.jsonl", "cases": 9},
        "attacks": attacks,
        "ties": [],
        **changes,
    }
    text = print_parts(run_report(parameters, measure(parameters, rows)), width, verbose)
    fits(text)
    return text


def test_names_with_markup_and_escapes_are_shown_verbatim() -> None:
    text = render(flips("[red]f[/red]", "x"), ["[red]f[/red]"])
    assert r"judge [bold red]:m:[/] \x1b[31mred · data d\x07.jsonl, 3 cases of 9, seed 0" in text
    assert "[red]f[/red]" in text
    assert "\x1b" not in text


def test_few_labels_are_told_beside_exchanges() -> None:
    rows = [
        replace(one, label="a" if at < 10 and not one.target else None) for at, one in enumerate(flips("f", "x" * 9))
    ]
    judged = [row(f"x{i}", [A, A], design="exchange", label="a") for i in range(8) for _ in range(2)]
    text = " ".join(render([*rows, *judged], ["f"], exchange={"pairwise": 8}).split())
    exchanged = "right about both questions in 8 of 8 exchanges, about neither in 0"
    assert f"pairwise: {exchanged}. Right in 5 of 5 labelled pairs before any rewrite" in text


def test_unlabelled_run_without_exchanges_shows_nothing_of_the_judge() -> None:
    text = " ".join(render(flips("f", "x" * 9), ["f"]).split())
    assert "no response is labelled better, so nothing shows that the judge can tell good from bad" in text


def test_tables_with_the_longest_names_fit_eighty_columns() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(240)]
    for i, judgments in enumerate([[A, A], [B, B], [A, B], [A, A], [A, A], [B, A]] * 40):
        for design in ("flip", "fixed"):
            rows.append(row(f"c{i}", judgments, design=design, attack="assertiveness", target="b"))
    text = render(rows, ["assertiveness"])
    assert "…" not in text
    assert all(len(one.rstrip()) <= 80 for one in text.splitlines())
    assert "40/240" in text


def test_severities_are_ordered_with_a_bar_in_eighty_columns() -> None:
    rows = [
        row(f"c{i}", [A, A] if i % 4 else [B, B], design="severity", attack=attack, target="b", severity=severity)
        for severity in (1, 3)
        for attack in ("assertiveness", "none")
        for i in range(240)
    ]
    for names in (("pairwise",), ("pairwise", "absolutely-everything")):
        protocols: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
        text = render([replace(one, protocol=name) for name in names for one in rows], [], protocols=protocols)
        assert all(len(one.rstrip()) <= 80 for one in text.splitlines())
        assert "…" not in text
        lines = [one.split() for one in text.splitlines() if one.startswith(" severity") and "180/240" in one]
        labels = ["1", "1+assertiveness", "3", "3+assertiveness"] * len(protocols)
        assert [words[:2] for words in lines] == [["severity", label] for label in labels]
        assert "████████··" in text
        sentence = ": the good response beat the worse one in 720 of 960 comparisons, least often at severity 1+"
        assert sentence in " ".join(text.split())


def test_cases_left_out_before_the_draw_are_reported() -> None:
    text = render([row("c", [A, A])], [], left_out={"no response meets all constraints": 117})
    assert "left out before the draw: no response meets all constraints (117)" in text


def test_reasons_for_missing_results_are_listed() -> None:
    rows = [row("1", [], attack="f", target="b", excluded="rewrite rejected"), row("2", [A, verdict(None)])]
    text = render(rows, ["f"])
    assert "excluded: rewrite rejected (1)" in text
    assert "invalid: no verdict (1)" in text
    assert "no flip rate: no valid verdict in 1 comparison" in " ".join(text.split())


def flips(attack: str, outcomes: str, protocol: str = "pairwise") -> list[Row]:
    """A case for each letter: its pair judged before and under an attack.

    ``x`` flips, ``.`` does not, ``=`` is a tie at baseline, ``?`` has no verdict after, ``!`` has a rejected rewrite.
    """
    rows = []
    for number, outcome in enumerate(outcomes):
        name = f"c{number}"
        rows.append(row(name, [TIE, TIE] if outcome == "=" else [A, A], protocol=protocol))
        after = {"x": [B, B], ".": [A, A], "?": [verdict(None), verdict(None)]}.get(outcome, [])
        excluded = "rewrite rejected" if outcome == "!" else None
        if outcome != "=":
            rows.append(row(name, after, protocol=protocol, attack=attack, target="b", excluded=excluded))
    return rows


@each(
    "rows, attacks, sentence",
    (flips("f", "x..."), ["f"], "1 of 4 losing responses won after their f rewrite (25.0%, 95% interval 4.6–69.9%: "
            "too few to be sure)."),
        (flips("f", "x" * 20 + "." * 20), ["f"], "20 of 40 losing responses won after their f rewrite (50.0%, 95% "
            "interval 35.2–64.8%)."),
        ([*flips("f", "x..."), *flips("g", "xx..")[1::2]], ["f", "g"], "3 of 8 losing responses won after their "
            "rewrite, most often under g (2 of 4, 50.0%, 95% interval 15.0–85.0%: too few to be sure)."),
        (flips("f", "...."), ["f"], "0 of 4 losing responses won after their f rewrite (0.0%, 95% interval"),
        ([*flips("f", "...."), *flips("g", "....")[1::2]], ["f", "g"], "0 of 8 losing responses won after their "
            "rewrite (per attack 0.0%, 95% interval"),
        (flips("f", "===="), ["f"], "pairwise: no flip rate: no eligible case: all 4 baselines were ties."),
        (flips("f", "="), ["f"], "no flip rate: no eligible case: 1 baseline was a tie."),
        (flips("f", "!!"), ["f"], "no flip rate: no eligible case: all 2 rewrites were rejected."),
        (flips("f", "=!"), ["f"], "no eligible case: 1 baseline was a tie, 1 rewrite was rejected."),
        (flips("f", "??"), ["f"], "no flip rate: no valid verdict in 2 comparisons. 2 of 4 comparisons gave no "
            "readable verdict."),
        (flips("f", "=?"), ["f"], "no eligible case with a valid verdict: 1 baseline was a tie, 1 verdict could not "
            "be read."),
        ([row("c", [A, B])], [], "The verdict changed with the order in 1 of 1 pair before any rewrite, so its other "
            "figures say little."),
        ([row("c", [A, B]), row("d", [A, A])], [], "The verdict changed with the order in 1 of 2 pairs before any "
            "rewrite."),
        ([], [], "pairwise: nothing to sum up."),
)  # fmt: skip
def test_report_begins_with_sentences_that_state_the_result(rows: list[Row], attacks: list[str], sentence: str) -> None:
    sentences, _, tables = render(rows, attacks, verbose=False).partition("\n\nFlip rate")
    assert sentence.removeprefix("pairwise: ").lower() in " ".join(sentences.split()).lower()
    assert "0/0" not in tables


def test_ties_are_counted_by_rule_and_controls_apart() -> None:
    rows = [row(f"c{i}", [TIE, TIE], design="fixed", attack="f", target="b") for i in range(3)]
    sentence = "3 of 3 good responses tied with their own rewrite."
    assert sentence not in render(rows, ["f"], ties=["pairwise"])  # praise is for a judge that tells good from bad
    labelled = [row(f"d{i}", [A, A], label="a") for i in range(9)]
    assert sentence in " ".join(render([*rows, *labelled], ["f"], ties=["pairwise"]).split())
    rows += [replace(one, attack="g") for one in rows]
    text = " ".join(render([*rows, *labelled], ["f", "g"], ties=["pairwise"]).split())
    assert "6 of 6 rewrites of good responses tied with the original." in text
    rows = [*flips("f", "xx.."), *flips("null", "x...")[1::2]]
    text = " ".join(render(rows, ["f", "null"], controls=["null"]).split())
    assert "2 of 4 losing responses" in text
    assert "Without a distractor, as noise, 1 of 4 under null flipped." in text


@each(
    "figure, reason",
    (Figure("m", None, None, "f"), "not measured"),
    (Figure("m", None, None, "f", excluded=3), "no eligible case: all 3 comparisons were left out"),
    (Figure("m", None, None, "f", excluded=1), "no eligible case: 1 comparison was left out"),
    (Figure("m", None, None, "f", invalid=1), "no valid verdict in 1 comparison"),
    (
        Figure("m", None, None, "f", excluded=3, reasons=(("[b]why\x1b", 2), ("baseline is a tie", 1))),
        "no eligible case: [b]why\\x1b (2), 1 baseline was a tie",
    ),
)
def test_empty_figure_states_the_reason(figure: Figure, reason: str) -> None:
    assert counted_cells(figure) == empty_reason(figure) == reason


@each(
    "table, words",
    (Table("", ("", "%", "k/n"), [("", "a", ["1.0", "1/2"])]), ["k/n"]),
        (Table("", ("", "%"), [("pairwise by score", "a", ["–"]), ("", "b by rating", "no")]),
            ["by score", "by rating", "–"]),
        (Table("", ("", "vs base"), [("", "k/n", ["better <0.001"])]), ["vs base", "better"]),
        (Table("", ("", "%"), [("", "n.s.", "n.s. is a reason")]), []),
        (Table("", ("", "%"), [("", "▲ a", ["1"])], ("▲",)), ["▲"]),
)  # fmt: skip
def test_legend_explains_the_words_in_the_table(table: Table, words: list[str]) -> None:
    assert [one.partition(": ")[0] for one in table.legend.split("; ") if one] == words


def test_reason_replaces_the_figures_and_wraps_in_their_columns() -> None:
    rows: list[TableRow] = [("g", " one", ["1.0", "2/3"]), ("g", " two", "a reason of many words")]
    assert [one.rstrip() for one in print_parts([Table("T", ("", "%", "matches"), rows)]).splitlines()] == [
        *("T", "                      %  matches", "─" * 32, "g", " one                1.0      2/3"),
        *(" two                a reason of", "                    many words"),
    ]


def test_verbose_adds_details_and_warnings_are_always_shown() -> None:
    rows = [*flips("f", "x...??"), row("d", [A, B])]
    changes: dict[str, Any] = {"self_judging": ["a judge may prefer its own style"], "left_out": {"no label": 3}}
    short, long = (render(rows, ["f"], verbose=verbose, **changes) for verbose in (False, True))
    for warning in ("a judge may prefer", "gave no readable verdict", "changed with the order", "invalid: no verdict"):
        assert warning in " ".join(short.split())
    for detail in ("Reading the judge", "left out before the draw"):
        assert (detail in short, detail in long) == (False, True)


def test_document_is_flat_and_rounded() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(3)] + [row("c0", [B, B], attack="f", target="b")]
    parameters = {**dict.fromkeys(_SHARED, "x"), "protocols": {"pairwise": ()}, "ties": [], "attacks": ["f"]}
    parameters["controls"] = []
    whole = document(parameters, measure(parameters, rows))
    (standing,) = whole["ranking"]
    assert (standing["protocol"], standing["k"], standing["n"]) == ("pairwise", 1, 1)
    flip = next(r for r in whole["results"] if r["measure"] == "flip_rate")
    expected = "measure protocol rule attack severity value low high k n invalid excluded unit"
    assert {*expected.split()} <= flip.keys()
    assert (flip["value"], flip["k"], flip["n"], flip["unit"]) == (1.0, 1, 1, "share")
    assert flip["low"] == round(flip["low"], 4)
    assert "against" not in flip


@each(
    "call, text",
    (bar(None), ""), (bar(0.0, 4), "····"), (bar(0.5, 4), "██··"), (bar(1.0, 4), "████"),
        (percent(None), "–"), (percent(1 / 3), "33.3"), (interval(None, None), ""), (interval(0.0, 0.5), "0.0–50.0"),
        (interval(-0.1, 0.5), "-10.0 to 50.0"), (p_value(0.0004), "<0.001"), (p_value(0.03), "0.030"),
        (p_value(None), ""),
        (count(1, "case"), "1 case"), (count(1200, "case"), "1,200 cases"),
        (count(2, "reply", "replies"), "2 replies"),
)  # fmt: skip
def test_numbers_are_formatted_for_people(call: str, text: str) -> None:
    assert call == text


def test_gate_shows_every_decision_whole_with_the_longest_names() -> None:
    name = "protocol-consistency"
    result = make_run(flips("assertiveness", "." * 240, name), protocols={name: []})
    for threshold in (0.1, 0.0001):
        verdict_ = decide(result, Limits.of(max_flip_rate=threshold))
        lines = print_parts(gate_report(verdict_)).splitlines()
        assert all(len(one.rstrip()) <= 80 for one in lines)
        assert any(one.rstrip().endswith(verdict_.decision) for one in lines)
        assert lines[0].startswith(f"{verdict_.decision.upper()}: ")


@given(st.text())
def test_plain_text_moves_no_cursor_and_starts_no_escape(text: str) -> None:
    cleaned = clean_text(text)
    assert not any(ord(c) < 32 and c not in "\t\n" for c in cleaned)
    assert not any(0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u202e\ufeff" for c in cleaned)
    assert "\n" not in line(text)


ROOT = Path(__file__).parents[2]
ANTHROPIC = "write openai:claude-3-5-sonnet --base-url https://api.anthropic.com/v1"


@each(
    "judge, message, unsaid",
    ("ollama:llama3", "write openai:llama3 --base-url http://127.0.0.1:11434/v1 for a model", "mean"),
    ("ollama/llama3:8b", "write openai:llama3:8b --base-url http://127.0.0.1:11434/v1", "mean"),
    ("lm-studio:qwen", "write openai:qwen --base-url http://127.0.0.1:1234/v1", "mean"),
    ("hf:org/model", "write org/model, or transformers:org/model, for a model of the hub", "mean"),
    ("huggingface/org/model", "write org/model, or transformers:org/model", "mean"),
    ("anthropic/claude-3-5-sonnet", ANTHROPIC, "huggi"),
    ("anthropic:claude-x", "write openai:claude-x --base-url https://api.anthropic.com/v1", "mean"),
    ("claude-3-5-sonnet", ANTHROPIC, "gpt"),
    ("openai/gpt-4o-2030", "write openai:gpt-4o-2030 for a model of its maker's server", "huggingface"),
    ("gpt-4o-latest", "did you mean 'gpt-4o'?; write openai:gpt-4o-latest for a model of its", "base-url"),
    ("chatgpt-4o-latest", "write openai:chatgpt-4o-latest", "base-url"),
    ("gemini-pro", "write openai:gemini-pro --base-url https://generativelanguage.googleapis.com", "gpt"),
    ("groq/llama-x", "write openai:llama-x --base-url https://api.groq.com/openai/v1", "mean"),
)
def test_foreign_model_name_is_translated(run: Any, judge: str, message: str, unsaid: str) -> None:
    ran = run("attack", "--judge", judge)
    check_refusal(ran, message)
    assert unsaid not in ran.err
    assert len(ran.err) < 250


def test_own_and_hub_names_are_left_alone() -> None:
    ours = ("openai/gpt-oss-20b", "gpt2", "openai-community/gpt2", "google/gemma-2-2b-it", "anthropic/hh", "a/claude")
    for name in (*ours, *(model.name for model in catalogue().values() if model.engine == "local")):
        assert translate_name(name) == "", name
    assert {entry.base_url.rstrip("/") for entry in catalogue().values() if entry.base_url} <= {*_SERVERS.values()}


def test_own_server_accepts_any_name(run: Any) -> None:
    server = ("--base-url", "http://127.0.0.1:9/v1", "--model-option", "attempts=1")
    ran = run("attack", "--judge", "ollama/llama3", *server, "--limit", "1")
    assert (ran.code, "does not answer" in ran.err) == (4, True)


@each(
    "arguments, message",
    (("attack", "--judge", "planted:fair", "--attack", "prolixity,sycophancy"), "for several, repeat --attack"),
    (("attack", "--judge", "planted:fair", "--protocol", "pairwise,base"), "for several, repeat --protocol"),
    (("attack", "--judge", "planted:fair", "--measure", "flip, fixed"), "for several, repeat --measure"),
    (("attack", "--judge", "planted:fair,planted:longer"), "--judge takes one"),
    (("meta", "--judge", "planted:fair,planted:longer"), "for several, repeat --judge"),
    (("gate", "--judge", "planted:fair", "--max-flip-rate", "0.1", "--attack", "a,b"), "for several, repeat --attack"),
    (("leaderboard", "--judge", "planted:fair", "--system", "elo,trueskill"), "for several, repeat --system"),
    (("meta", "--judge", "planted:fair", "--data", "a.json,b.json"), "for several, repeat --data"),
)
def test_several_model_names_in_one_are_split(run: Any, arguments: tuple[str, ...], message: str) -> None:
    check_refusal(run(*arguments), f"; {message}\n")


@each("text", '{"foo": 1}\n', '[{"foo": 1}]', "words\n")
@each("command", ("attack", "--data"), ("leaderboard", "--matches"))
def test_unknown_format_message_is_short_and_names_the_page(run: Any, command: tuple[str, ...], text: str) -> None:
    Path("d.json").write_text(text, encoding="utf-8")
    ran = run(*command, "d.json", "--judge", "planted:fair") if command[0] == "attack" else run(*command, "d.json")
    check_refusal(ran)
    assert len(ran.err) < 320
    for section in re.findall(r"`distract (list \w+)`", ran.err):
        assert run(*section.split()).code == 0


@each(
    "what, titles",
    ("data", ["data sets:", "data formats:"]),
    ("formats", ["data formats:"]),
    ("judge", ["judges:"]),
    ("Data-Sets", ["data sets:"]),
    ("rating_systems", ["rating systems:"]),
    ("systems", ["rating systems:"]),
    ("matches", ["matches:"]),
)
def test_sections_can_be_listed_by_any_of_their_words(run: Any, what: str, titles: list[str]) -> None:
    ran = run("list", what)
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if not line.startswith(" ")] == titles


def test_unknown_section_is_one_line(run: Any) -> None:
    check_refusal(run("list", "prompts"), "unknown section 'prompts'")


def test_replies_name_the_store_and_the_run_apart(run: Any) -> None:
    command = ("attack", "--judge", "planted:fair", "--attack", "prolixity", "--limit", "1", "--store", "s")
    first = run(*command, "--protocol", "pairwise")
    assert "plan: about" in first.err
    assert "replies: 0 were stored" in first.err
    other = run(*command, "--protocol", "absolute")
    assert re.search(r"the store holds \d+ replies of this judge; this run reuses those it needs", other.err)
    assert "replies: 0 were stored" in other.err
    again = run(*command, "--protocol", "pairwise", "--out", "b")
    assert ", 0 made" in again.err
    assert "run folder: b" in again.out


def test_install_hints_match_the_pages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    commands = set[str]()
    for path in (path for folder in ("distract", "judges", "attacks") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "distract[" not in text.replace("tool.distract[", ""), path
        commands.update(re.findall(r"(?:install_command\(|import_library\(\"[\w.]+\", )[\"'](\w+)[\"']", text))
    assert commands >= {"openai", "vllm", "local", "hub", "parquet", "language", "pytest"}
    assert commands <= {*extras}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for extra in commands - {"pytest"}:
        assert errors.install_command(extra).partition(" in ")[0].removesuffix(']"') in pages, extra
    assert errors.install_command("hub") == 'pip install -c constraints.txt ".[hub]" in the source folder of distract'


def test_pages_install_in_one_form() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    forms = re.findall(r'pip install (?:-c (\S+) )?(?:-e )?("?)([^\s\["`]*)\[([\w,]+)\]', pages)
    assert len(forms) > 15
    for limits, *written, extras in forms:
        # vLLM pins a torch of its own.
        assert [limits, *written] == ["" if "vllm" in extras else "constraints.txt", '"', "."], extras


def test_counts_and_shares_are_formatted() -> None:
    assert [count(n, "reply", "replies") for n in (0, 1, 1000)] == ["0 replies", "1 reply", "1,000 replies"]
    assert [share_hint(n) for n in (0.5, 1, 101, float("nan"), float("inf"))] == [""] * 5
    assert share_hint(0.5, is_percent=True) == "; write 0.005 for 0.5%"


@each(
    "path, change",
    ("r/run.json", lambda r: r["parameters"].update(reference="./evil.py")),
    ("r/run.json", lambda r: r["parameters"].update(effects=[[1]])),
    ("r/run.json", lambda r: r["parameters"].update(families={"assertiveness": []})),
    ("r/run.json", lambda r: r["parameters"].update(protocols={"pairwise": ["score"]})),
    ("r/run.json", lambda r: r["parameters"].update(protocols={})),
    ("r/rows.jsonl", lambda r: r.update(case=["flips"])),
    ("r/rows.jsonl", lambda r: r.update(target={})),
    ("r/rows.jsonl", lambda r: r["a"].update(severity=[1])),
    ("r/rows.jsonl", lambda r: r.update(shown=["\x1b[31m", "b"])),
    ("r/rows.jsonl", lambda r: r.update(tokens=[])),
    ("r/rows.jsonl", lambda r: r["judgments"][0].update(probabilities=["1", 0, 0])),
    ("r/rows.jsonl", lambda r: r["judgments"][0].update(scores=10**400)),
    ("r/rows.jsonl", lambda r: r["judgments"][0].update(mass=[])),
    ("r/rewrites.jsonl", lambda r: r["response"].update(turns={"a": []})),
    ("r/rewrites.jsonl", lambda r: r.update(original=[None])),
    ("r/cases.jsonl", lambda r: r.update(prompt={"a": []})),
)
def test_record_of_wrong_types_is_refused(run: Run, path: str, change: Callable[[dict[str, Any]], object]) -> None:
    rewrite_records(run, path, change)
    commands = ("explain",) if path == "r/cases.jsonl" else ("explain", "report", "flips")
    for command in commands:
        ran = run(command, "r")
        assert (ran.code, "Traceback" in ran.err, "\x1b" in ran.err) == (2, False, False), ran.err


def test_scores_of_any_size_can_be_read_again(run: Run) -> None:
    """A judge function may score without a scale."""
    rewrite_records(run, "r/rows.jsonl", lambda r: r["judgments"][0].update(scores=[1e300, -(2**62)]))
    assert run("report", "r").code == 0


def rewrite_records(run: Run, path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change every record of a file of a run, with its checksum."""
    write_run(run)
    text = Path(path).read_text()
    lines = [*map(json.loads, [text] if path == "r/run.json" else text.splitlines())]
    for one in lines:
        change(one)
    Path(path).write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    checksum = sha256(Path(path).read_bytes()).hexdigest()
    change_record("r/manifest.json", lambda r: r["checksums"].update({Path(path).name: checksum}))
