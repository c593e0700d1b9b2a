"""Test each rule of the first layer of fidelity: accepted and rejected rewrites, and any text."""

import pytest
from hypothesis import given, strategies as st
from loops import each
from test_attacks import DISTRACTORS, PLACEBO, texts

from distract.core.records import Constraint
from distract.core.registry import attacks
from distract.data import amounts
from distract.data.constraints import check, parse
from distract.data.datasets import load
from distract.data.lexicon import content_words
from distract.models.families import families, find_self_judging
from distract.rewriting import fidelity
from distract.rewriting.fidelity import alignment, claims, facts, inspect, inspect_severity, units
from distract.rewriting.fidelity.facts import code_spans, quote_spans, url_spans

NO_COMMA = Constraint("punctuation:no_comma")
PROMPT = ("How long does the trip take and what does it cost? Yours, Ewa",)


def reasons(original: str, rewrite: str, *constraints: Constraint) -> tuple[str, ...]:
    return inspect(PROMPT, (original,), (rewrite,), constraints, is_strict=True).reasons


ACCEPTED = [
    ("the same", "The trip takes 3 hours.", "The trip takes 3 hours."),
    ("digits and words", "The trip takes 3 hours.", "The trip most certainly takes three hours."),
    ("words and digits", "The trip takes twenty-five minutes.", "The trip will take 25 minutes."),
    ("grouping", "It sold 1,000 tickets.", "It sold 1000 tickets without question."),
    ("scale", "It cost $2.5 million to build.", "Building it cost 2,500,000 dollars."),
    ("scale in words", "It cost two hundred and five euros.", "It cost €205 to build."),
    ("trailing zeros", "The ratio is 3.50 on paper.", "On paper the ratio is 3.5, beyond doubt."),
    ("full stop after a number", "The answer is 42.", "Undoubtedly, 42 is the answer!"),
    ("idle one", "The trip takes 3 hours.", "One can be certain that the trip takes 3 hours."),
    ("one lost", "It is one of the best trips.", "It is among the best trips."),
    ("one for 1", "Take 1 ticket.", "Do take one ticket."),
    ("ordinal for a number", "Step 2 is to board the train.", "The second step is to board the train."),
    ("both for two", "The two trains leave early.", "Both trains leave early."),
    ("percent", "It grew by 5 percent overall.", "Overall it grew by 5%."),
    ("currency", "It costs $5 per ticket.", "It costs 5 dollars per ticket."),
    ("unit apart", "The trip takes 3 hours.", "The trip takes 3 full and glorious hours."),
    ("unit with a hyphen", "A 10-second pause is fine.", "A pause of 10 seconds is fine."),
    ("unit glued", "It weighs 5kg in all.", "In all it weighs 5 kg."),
    ("range", "It takes 3-4 hours.", "It takes 3 to 4 hours."),
    ("negative", "Here -15 < x holds for x.", "Undoubtedly -15 < x holds for x."),
    ("list markers", "1. Board the train\n2. Find a seat", "- Board the train\n- Find a seat, with pleasure"),
    ("date order", "It opened on January 5, 1901.", "It opened on 5 January 1901."),
    ("date in digits", "It opened on 1901-01-05.", "It opened on the 5th of January 1901."),
    ("short month", "It opened on Jan. 5 that year.", "It opened on January 5 that year."),
    ("may is a verb", "It may open soon.", "It will open soon."),
    ("url", "See https://example.org/a for it.", "Do see (https://example.org/a) for it."),
    ("code", "Run `make all` to build it.", "Kindly run `make all` to build it."),
    ("quote marks", 'They call it "the hub" of trade.', "They call it “the hub” of trade."),
    ("quote with a stop", 'They call it "the hub."', 'They truly call it "the hub".'),
    ("quoting own words", "The word hub fits the place.", 'The word "hub" fits the place.'),
    ("name with a number", "H2O and COVID-19 matter here.", "Here H2O and COVID-19 matter."),
    ("refusing already", "I'm sorry, but I can't open it.", "I'm so sorry, but I can't open it, my friend."),
    ("comment already", "Here is a revised version of it.", "Here is a revised version of it, dear friend."),
    ("a name's adjective", "They moved to Brazil last year.", "They made the move to the Brazilian coast last year."),
    ("a name's initials", "It joined the European Union late.", "It certainly joined the EU late."),
    ("names of the prompt", "It takes hours.", "It takes hours, as you know, dear Ewa."),
    ("half an hour", "Rest it for half an hour.", "Do rest it for 30 minutes."),
    ("weeks in days", "It lasts 3 weeks.", "It lasts 21 days without fail."),
    ("a share in percent", "A fifth of it is water.", "Water is 20% of it."),
    ("per cent", "The town grew by 5 per cent.", "The town grew by 5%."),
    ("each of two", "It may take between one and three hours.", "It takes one to three hours."),
    ("unit left to the context", "The room is 4 m long, 6 m wide.", "The room is 4 by 6 m."),
    ("degrees", "Set it to 21 °C now.", "Do set it to 21 degrees Celsius now."),
    ("inches", "Cut 10 inch of tape.", "Do cut 10 inches of tape."),
    ("clock", "It opens at 3 p.m. sharp.", "It opens at 3 pm sharp, without fail."),
    ("half a million", "It cost 1.5 million.", "It cost one and a half million."),
    ("day in words", "It began on July 4, 1776.", "It began on the fourth of July, 1776."),
    ("few words", "Paris", "It is Paris."),
    ("number only", "5", "Without question: 5"),
    ("script kept", "Поезд идёт три часа до города.", "Поезд идёт ровно три часа до города."),
    ("empty stays empty", "", ""),
]

REJECTED = [
    ("number lost: 42", "The answer is 42 for the trip.", "The answer for the trip is clear."),
    ("number invented: 7", "The trip takes hours.", "The trip takes hours, as 7 experts say."),
    ("number lost: 3", "The trip takes 3 hours.", "The trip takes 4 hours."),
    ("number lost: 12", "The trip takes twelve hours.", "The trip takes hours."),
    ("number lost: -15", "Here -15 < x holds.", "Here 15 < x holds."),
    ("number lost: 3.11.7", "Use Python 3.11.7 for it.", "Use Python 3.11 for it."),
    ("number lost: h2o", "Drink H2O every day.", "Drink water every day."),
    ("unit lost: 5 kg", "It weighs 5 kg in all.", "It weighs 5 lb in all."),
    ("unit invented: 5 %", "It grew by 5 in all.", "It grew by 5% in all."),
    ("unit lost: 5 $", "It costs $5 in all.", "It costs €5 in all."),
    ("date lost: january", "It opened on January 5.", "It opened on February 5."),
    ("date invented: monday", "It opens at noon.", "It opens on Monday at noon."),
    ("url lost: https://example.org/a", "See https://example.org/a for it.", "See the page for it."),
    ("url invented", "See the page for it.", "See the page www.example.org for it."),
    ("code lost: make all", "Run `make all` to build it.", "Run the build command to build it."),
    ("code lost", "Do this:\n```\nx = y\n```\nand go", "Do this:\n```\ny = x\n```\nand go"),
    ("quote lost: the hub", 'They call it "the hub" of trade.', "They call it the centre of trade."),
    ("quote invented: a jewel", "They love the place.", 'They love the place, "a jewel".'),
    ("name lost: curie", "It was Marie Curie who found it.", "It was Marie Meitner who found it."),
    ("name invented: meitner", "It was Marie Curie who found it.", "It was Marie Meitner who found it."),
    ("number lost: 3", "It lasts 3 weeks.", "It lasts 20 days."),
    ("negation lost: no", "The deal does not have to be in writing.", "The deal has to be in writing."),
    ("unit lost: 40 ms", "It takes 40 ms to load.", "It takes 40 s to load."),
    ("unit lost: 21 °c", "Set it to 21 °C now.", "Set it to 21 °F now."),
    ("unit lost: 3 pm", "It opens at 3 pm sharp.", "It opens at 3 am sharp."),
    ("unit lost: 40 %", "Only 40% may vote.", "Only 40 may vote."),
    ("date lost: march", "It opened in March 2019.", "It opened in April 2019."),
    ("date lost: 03/04/2020", "It opened on 03/04/2020.", "It opened on 04/03/2020."),
    ("code lost: getId", "Call `getId` to read it.", "Call `getID` to read it."),
    ("opposite: safe and unsafe", "The old bridge is safe for cars.", "The old bridge is unsafe for cars."),
    ("sentence lost: The train", "The train is slow today.", "Поезд сегодня идёт медленно."),
    ("refusal", "Open the door of the train.", "I'm sorry, but I can't help to open the door of the train."),
    ("refusal", "Open the door of the train.", "As an AI I open the door of the train."),
    ("words repeated", "Open the door of the train.", "Open the door of the train, q q q q q q."),
    ("words repeated", "Open the door.", "Do open the door, and so on, and so on, and so on, and so on, and so on."),
    ("comment about the task", "Open the door.", "Here is the rewritten response: Open the door."),
    ("comment about the task", "Open the door.", "Rewritten response:\nOpen the door."),
    ("not a rewrite", "Board the train early and find seats.", "Bananas ripen faster inside paper bags overnight."),
    ("sentence lost: Board", "Board the train early and find seats.", "How long does the trip take and what cost?"),
    ("empty", "Board the train.", "  \n"),
]


@each("original, rewrite", *(case[1:] for case in ACCEPTED))
def test_faithful_rewrite_is_accepted(original: str, rewrite: str) -> None:
    assert reasons(original, rewrite) == ()


@each("reason, original, rewrite", *REJECTED)
def test_unfaithful_rewrite_is_rejected_with_the_reason(reason: str, original: str, rewrite: str) -> None:
    assert any(slugs.startswith(reason) for slugs in reasons(original, rewrite)), reasons(original, rewrite)


def test_turns_are_compared_one_by_one() -> None:
    assert inspect(PROMPT, ("a b", "c d"), ("a b c d",))[0][0] == "turns: 2 became 1"
    assert inspect(PROMPT, ("", "It is late."), ("", "It is late indeed."))[0] == ()
    reasons = inspect(PROMPT, ("It takes 3 hours.", "It costs 9 euros."), ("It takes 9 hours.", "It costs 3 euros."))[0]
    assert "number lost: 3" in reasons
    assert "number lost: 9" in reasons


@each(
    "original, rewrite, expected",
    ("It is late now.", "It is late, now.", ("constraint broken: punctuation:no_comma",)),
    ("It is late now.", "Now it is late.", ()),
    ("It is late, now.", "It is late now.", ("constraint repaired: punctuation:no_comma",)),
    ("It is late, now.", "Now, it is late.", ()),
)
def test_constraint_stays_satisfied_or_broken(original: str, rewrite: str, expected: tuple[str, ...]) -> None:
    assert reasons(original, rewrite, NO_COMMA) == expected


def test_severity_breaks_exactly_as_many_constraints() -> None:
    both = (NO_COMMA, Constraint("change_case:english_lowercase"))
    for rewrite, broken in (("it is late, now", 1), ("It is late, now", 2)):
        for severity in (1, 2):
            reasons, evidence, _ = inspect(PROMPT, ("it is late now",), (rewrite,), both, severity=severity)
            expected = () if severity == broken else (f"severity: {broken} constraints broken, not {severity}",)
            assert reasons == expected
            assert len(str(dict(evidence)["constraints_broken"]).split(", ")) == broken
    assert inspect(PROMPT, ("it is late now",), ("it is late now",), both, severity=1)[0] == ("unchanged",)
    assert inspect_severity("It is late, now", both, 2)[0] == ()


def test_feature_must_increase_except_for_a_control() -> None:
    def marker(text: str) -> float:
        return float(text.count("!"))

    before = ("Go home now!",)
    assert inspect(PROMPT, before, ("Now go home!!",), marker=marker)[0] == ()
    assert inspect(PROMPT, before, ("Now go home.",), marker=marker)[0] == ("feature did not increase: 1 to 0",)
    assert inspect(PROMPT, before, ("Go  home now!",), marker=marker)[0] == ("unchanged",)
    assert inspect(PROMPT, before, before)[0] == ()


def test_evidence_states_the_measurements() -> None:
    evidence = dict(inspect(PROMPT, ("Trains run late.",), ("Trains surely run late.",), marker=len)[1])
    assert (evidence["marker_before"], evidence["marker_after"]) == (16, 23)
    assert (evidence["new_content_share"], evidence["kept_content_share"]) == (0.25, 1.0)
    assert (evidence["words_before"], evidence["words_after"]) == (3, 4)


def test_new_content_is_a_share_of_the_rewrite() -> None:
    assert content_words("電車") == {"電", "車"}


def test_marks_around_the_whole_text_are_no_quotation() -> None:
    assert quote_spans('"All of this is wrapped."') == []
    assert quote_spans('"He said "no" to us."') == [(9, 13)]
    assert quote_spans('"Yes" and "no"') == [(0, 5), (10, 14)]


def test_code_is_detected_with_its_delimiters() -> None:
    text = "a `b` c\n```py\nd\n```\ne ``f`g`` ~~~ h\n```\nopen"
    assert [text[a:b] for a, b in code_spans(text)] == ["`b`", "```py\nd\n```", "``f`g``", "```\nopen"]


@given(st.text(), st.text())
def test_any_text_can_be_inspected(original: str, rewrite: str) -> None:
    assert inspect((original,), (original,), (rewrite,)) == inspect((original,), (original,), (rewrite,))


drawn = st.lists(st.sampled_from([text for _, *pair in ACCEPTED for text in pair]), max_size=4).map(" ".join)
MODULES = (amounts, facts, fidelity, alignment, claims, units)
REMEMBERED = [found for module in MODULES for found in vars(module).values() if hasattr(found, "cache_clear")]


@given(drawn, drawn)
def test_caching_changes_no_result(one: str, other: str) -> None:
    pairs = [(one, other), (other, one), (one, other), (one, f"{other} {one}")]
    results = [inspect(PROMPT, (original,), (rewrite,), marker=len) for original, rewrite in pairs]
    for (original, rewrite), before in zip(pairs, results, strict=True):
        for function in REMEMBERED:
            function.cache_clear()
        assert inspect(PROMPT, (original,), (rewrite,), marker=len) == before


@given(drawn | st.text(st.sampled_from("`~a@.w:/h1-\n ")))
def test_fast_searches_agree_with_plain_patterns(text: str) -> None:
    assert url_spans(text) == [matches.span() for matches in facts.URL.finditer(text)]
    assert code_spans(text) == [matches.span() for matches in facts._CODE.finditer(text)]
    lower = text.casefold()
    dates = {f"{amounts.MONTH[m[1] or m[4]]} {int(m[2] or m[3])}" for m in amounts._DATE.finditer(lower)}
    dates |= {*amounts.DAY.findall(lower), *amounts._SLASHES.findall(lower)}
    assert amounts._dates(lower, True) == dates


@given(st.text())
def test_text_is_faithful_to_itself(text: str) -> None:
    assert inspect(PROMPT, (text,), (text,))[0] == ()


PIECES = [
    *("hundred ", "if a b, ", "a ", '"', "`", "```\n", "1,", "1.", "one ", "www.", "a@", "<", "[", "(", "_"),
    *("*", "here is ", ". ", " ", "-", "\n", "1 hundred "),
]


@each(
    "name, expected",
    *((name, {"gpt"}) for name in ("gpt-4-0613", "GPT-3.5 Mini", "openai:chatgpt-4o-latest", "o3-mini", "o1")),
    *((name, {"llama"}) for name in ("transformers:meta-llama/Llama-3.3-70B-Instruct", "meta-llama/llama-3-8b:free")),
    *((name, {"llama"}) for name in ("LLaMA-13B", "vicuna-13b", "TinyLlama-1.1B")),
    *((name, {"qwen"}) for name in ("transformers:Qwen/Qwen2.5-3B-Instruct@main", "transformers:./models/qwen2.5-3b/")),
    *((name, {"qwen"}) for name in ("transformers:/c/models--Qwen--Qwen2.5-3B/snapshots/abc123", "qwen2.5:7b")),
    ("CodeQwen1.5-7B", {"qwen"}),
    ("DeepSeek-R1-Distill-Qwen-7B", {"deepseek", "qwen"}),
    *((name, {"claude"}) for name in ("Claude-v1", "anthropic.claude-3-5-sonnet-20240620-v1:0")),
    ("Mixtral-8x7B", {"mistral"}),
    ("smollm2-135m", {"smollm"}),
    ("gemma-2-9b", {"gemma"}),
    ("transformers:./models/mine", {"mine"}),
    *((name, {name}) for name in ("stablelm-zephyr-3b", "good", "output_1", "o2-lab", "o3d-printer")),
)
def test_name_reveals_the_family(name: str, expected: set[str]) -> None:
    assert families(name) == expected


@each(
    "judge, writers, authors, expected",
    ("smollm2-135m", ["smollm2-135m"], [], ["the generator, smollm2-135m, is the judge itself"]),
    ("qwen2.5-72b", ["qwen-3b"], [], ["the generator, qwen-3b, and the judge are of one family (qwen)"]),
    ("gpt-4", ["llama-3"], ["gpt-3.5-turbo", "claude-v1", "gpt-4"],
     ["author of responses, gpt-3.5-turbo, and the judge are of one family (gpt)", "gpt-4, is the judge itself"]),
    ("model-a", ["model-b"], ["model-c"], []),
    ("llama-3", ["gpt-4"], ["good", "low-1"], []),
)  # fmt: skip
def test_judging_its_own_family_is_named(
    judge: str, writers: list[str], authors: list[str], expected: list[str]
) -> None:
    notes = find_self_judging(judge, writers, authors)
    assert len(notes) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, notes, strict=True))


@given(st.text(max_size=40))
def test_every_name_has_a_family_that_includes_it(name: str) -> None:
    assert families(name)
    assert find_self_judging(name, [name], [])


CASES = load("tweakset").cases
EVERY_OTHER = CASES[::2]
LOWER = {s: attacks()[f"severity-{s}"] for s in (1, 2, 3)}
GOOD = "the trip takes 3 hours and costs 9 euros"
KINDS = ("punctuation:no_comma", "change_case:english_lowercase", "detectable_format:title")
THREE = tuple(parse({"kind": kind}) for kind in KINDS)


@pytest.mark.parametrize("severity", LOWER)
def test_nearly_every_embedded_answer_can_be_made_worse_by_any_amount(severity: int) -> None:
    refused = []
    for case in EVERY_OTHER:
        good = case.responses[0]
        worse = LOWER[severity].rewrite(good.text, case.constraints, 0)
        reasons = inspect(case.prompt, good.turns, (worse,), case.constraints, severity=severity).reasons
        refused += [case.id] if reasons else []
        assert LOWER[severity].rewrite(good.text, case.constraints, 0) == worse
    assert len(refused) <= 0.05 * len(EVERY_OTHER)


def test_seed_chooses_the_constraint_to_break() -> None:
    case = CASES[0]
    broken = set()
    for seed in range(12):
        worse = LOWER[1].rewrite(case.responses[0].text, case.constraints, seed)
        broken |= {c.kind for c in case.constraints if not check(c, worse)}
    assert len(broken) == 3


@each("severity", *LOWER)
def test_broken_constraints_count_and_too_few_leave_the_text(severity: int) -> None:
    # The title is missing, so one constraint is broken before the attack.
    worse = LOWER[severity].rewrite(GOOD, THREE, 0)
    assert (sum(not check(c, worse) for c in THREE), LOWER[severity].rewrite(GOOD, (), 0)) == (severity, GOOD)


@given(st.text(), st.integers(0, 9), st.sampled_from(sorted(LOWER)))
def test_any_text_is_made_worse_or_left_alone(text: str, seed: int, severity: int) -> None:
    worse = LOWER[severity].rewrite(text, THREE, seed)
    assert worse == text or sum(not check(c, worse) for c in THREE) == severity


def test_severities_are_no_distractors() -> None:
    assert not any(attack.default or attack.control for attack in LOWER.values())


@given(text=texts)
def test_tone_stays(text: str) -> None:
    new = PLACEBO.rewrite(text, (), 0)
    for attack in DISTRACTORS:
        if attack.marker and attack.name != "prolixity":  # which counts letters
            assert attack.marker(new) == attack.marker(text)


@each(
    "original, rewrite, changed",
    ("This can influence it.", "This may influence it.", set()),
    ("It began in May.", "It began in spring.", {"date"}),
    ("It began in May.", "It began in June.", {"date"}),
    ("it opened in april.", "it opened in spring.", {"date"}),
    ("It was built in may 1987.", "It was built in march 1987.", {"date"}),
    ("Soldiers march in.", "Soldiers walk in.", set()),
    ("One example is tea. Another is rice.", "Two examples are tea and rice.", set()),
    ("There are three main reasons.", "There are several reasons.", set()),
    ("There are three main reasons.", "There are four main reasons.", {"number"}),
    ("It takes two hours and two steps.", "It takes hours and steps.", {"number"}),
)
def test_months_and_counts_are_facts_only_where_they_are_sure(original: str, rewrite: str, changed: set[str]) -> None:
    kinds = {kind for kind, one in facts.differences(original, rewrite).items() if one.lost or one.invented}
    assert kinds == changed
