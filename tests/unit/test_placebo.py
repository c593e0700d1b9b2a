"""Test the placebo and the other controls that rules write: their table of alternations, and what they do to texts."""

import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from statistics import median
from typing import Any

import pytest
from distract.attacks.placebo import load_rules, punctuate, reorder
from distract.attacks.rules import Text, substitute
from loops import each
from test_attacks import GROUPS, find_words, inspect_turns, tweakset, write

from distract.core import registry
from distract.core.attack import Attack, join_controls
from distract.core.errors import UnknownName, UsageError
from distract.core.plan import step
from distract.core.records import Case, Constraint, Response
from distract.data.constraints import check, parse
from distract.rewriting.writers import checksum, list_arms
from distract.studies.eligibility import Degradation, parse_attack

PLACEBO, TYPOGRAPHY, FILLER = map(registry.get_attack, ("placebo", "typography", "filler"))
TABLE: dict[str, Any] = tomllib.loads((files("distract.attacks") / "alternations.toml").read_text(encoding="utf-8"))
RULES = [*TABLE["words"]["rules"], *(rule for ways in TABLE["habits"].values() for rule in ways)]
PATTERNS = [*load_rules().words, *(way for ways in load_rules().habits for way in ways)]


def test_each_rule_changes_its_example_and_no_other_sense() -> None:
    for (pattern, new, example, *others), (compiled, _) in zip(RULES, PATTERNS, strict=True):
        changes = [len(substitute(Text(text), compiled, new)) for text in (example, *others)]
        assert changes == [1] + [0] * len(others), (pattern, example, others)


def test_each_order_changes_its_example_and_no_other_sense() -> None:
    for _, example, *others in (*TABLE["first"]["rules"], *TABLE["last"]["rules"]):
        ((edit,),) = reorder(Text(example))
        assert sorted(find_words(edit[2])) == sorted(find_words(example))
        assert edit[:2] == (0, len(example))
        assert edit[2] != example
        assert not [one for text in others for one in reorder(Text(text))]


@each(
    "text, expected",
    ("It was late, and the sun was low.", " "), ("It was late, but you can go.", " "),
    ("It was late but it is dry.", ", "), ("My aunt and I are late.", None), ("Nothing but the sun is up.", None),
    ("They sell figs, and plums.", None), ("When it rains, and it is cold, we stay.", None),
    ("Tell me if it rains, and it is cold.", None),
)  # fmt: skip
def test_comma_between_two_clauses(text: str, expected: str | None) -> None:
    assert [edit[2] for (edit,) in punctuate(Text(text))] == ([] if expected is None else [expected])


@each(
    "text, expected",
    ('He said "no" twice.', {"He said “no” twice."}), ("It’s “on”.", {"It's “on”.", 'It’s "on".', "It's \"on\"."}),
    ("Wait here for the next bus to the town... and go", {"Wait here for the next bus to the town… and go"}),
    ("a tall - old - tree", {"a tall – old – tree"}),
    ("It is dry. We go now", {"It is dry.  We go now"}), ("It is dry.  We go now", {"It is dry. We go now"}),
    ("Ask Mr. Bean or Dr. Who now!", set()), ("Он ушёл. Она спит!", {"Он ушёл.  Она спит!"}),
    ("It is dry.", {"It is dry"}), ("It is dry", {"It is dry."}), ("What is it?", set()), ("漢字です。", set()),
    ("x = [1, 2]\nprint(x)", {"x = [1,2]\nprint(x)"}), ("x = f(1, 200)", set()), ("print('a, b')", set()),
    ("```\na - b... \"c\"\n```", set()), ('{"a": "b c"}', set()), ("", set()),
)  # fmt: skip
def test_typography_changes_a_habit_throughout(text: str, expected: set[str]) -> None:
    assert {TYPOGRAPHY.rewrite(text, (), seed) for seed in range(20)} - {text} == expected


def test_typography_keeps_the_format() -> None:
    bullets = parse({"kind": "detectable_format:number_bullet_lists", "num_bullets": 2})
    texts = {TYPOGRAPHY.rewrite("* one plum\n* two figs", (bullets,), seed) for seed in range(20)}
    assert all(check(bullets, text) for text in texts)
    assert len(texts) > 1


@each(
    "text, expected",
    ("It usually takes about ten minutes to cook.", "It generally takes about ten minutes to cook."),
    ("Perhaps wait for the bus, because the walk is long.", "Maybe wait for the bus, because the walk is long."),
    ("Tools such as a saw are mostly for hire.", "Tools such as a saw are mainly for hire."),
    ("Then add the salt and start with the fish.", "Then add the salt and begin with the fish."),
    ("If your wifi is weak, the network socket might help.", "The network socket might help if your wifi is weak."),
    ("The seeds sprout well when the soil is warm.", "When the soil is warm, the seeds sprout well."),
    ("IF NECESSARY BEGIN AT THE DOOR.", "IF NECESSARY START AT THE DOOR."),
)
def test_words_and_clauses_change(text: str, expected: str) -> None:
    assert expected in {PLACEBO.rewrite(text, (), seed) for seed in range(60)}


@each(
    "text",
    "Fix the tap or call for a repair.",
    "It costs little and asks for little water.",
    "She left because of the rain.",
    "I am no more than 3 steps behind.",
    "Think about two things and choose to stay.",
    "It opened around 1900 or at about noon.",
    "If it leaks, it drips.",
    "When that is done, call the plumber.",
    "If they are not, the pipes freeze.",
    "The shop gave a fresh start to many.",
    "Why don't you ask whether they are in?",
    "The moon is pale tonight\nand nobody is near the sea\nbut perhaps a gull begins\nto sing.\n",
)
def test_other_meanings_and_verse_keep_their_words(text: str) -> None:
    assert all(find_words(PLACEBO.rewrite(text, (), seed)) == find_words(text) for seed in range(20))


def list_texts(count: int) -> Iterator[tuple[str, tuple[Constraint, ...]]]:
    """Answers with their requirements, from all parts of the embedded set."""
    cases: Sequence[Any] = tweakset()
    for case in cases[:: len(cases) // count]:
        yield case["responses"][0]["text"], tuple(map(parse, case["constraints"]))


def test_placebo_changes_nearly_every_text_into_many_of_one_length() -> None:
    changed, distinct = list[bool](), list[int]()
    for text, required in list_texts(8):
        texts = [PLACEBO.rewrite(text, required, seed) for seed in range(12)]
        assert texts[:1] == [PLACEBO.rewrite(text, required, 0)]
        for new in texts:
            assert [check(one, new) for one in required] == [check(one, text) for one in required]
            # Words and typography may each change the length.
            assert abs(len(new) - len(text)) <= 0.1 * len(text)
            assert abs(len(new.split()) - len(text.split())) <= 0.05 * len(text.split())
        changed.append(texts[0] != text)
        distinct.append(len({*texts} - {text}))
    assert all(changed)
    assert median(distinct) >= 5


def test_placebo_in_other_languages_keeps_the_words() -> None:
    for name in ("Chinese", "Japanese", "Arabic", "Russian"):
        for seed in range(5):
            (new,) = write(PLACEBO, GROUPS["other"][name], seed)
            assert find_words(new) == find_words(GROUPS["other"][name][0])


@each(
    "name, expected",
    ("filler+placebo", "placebo+filler"), ("filler + typography + placebo", "placebo+typography+filler"),
    ("null+placebo", "null+placebo"), ("placebo+none", "placebo"), ("placebo+placebo", "placebo"),
    ("severity-1+filler+placebo", "severity-1+placebo+filler"),
)  # fmt: skip
def test_controls_join_in_the_order_of_writing(name: str, expected: str) -> None:
    attack = parse_attack(name)
    assert attack.name == expected
    joined = attack.distractor if isinstance(attack, Degradation) else attack
    assert joined
    assert joined.control
    assert registry.attacks()[joined.name].parts == joined.parts
    assert checksum([joined]) == checksum([PLACEBO])


@each("name", "placebo+rewrite", "placebo+filler+plea", "placebo+assertiveness")
def test_what_is_no_control_by_rule_does_not_join(name: str) -> None:
    assert name not in registry.attacks()
    with pytest.raises(UsageError):
        parse_attack(name)


@each("name", "filler+placebo", "placebo+", "placebo+nope", "none+placebo")
def test_only_names_of_joined_controls_are_known(name: str) -> None:
    with pytest.raises(UnknownName):
        registry.look_up("attack", name, registry.attacks())


def test_joined_control_writes_what_its_parts_write_in_turn() -> None:
    (text,) = GROUPS["English"]["prose"]
    joined = join_controls([FILLER, PLACEBO, TYPOGRAPHY])
    for seed in range(5):
        expected = FILLER.rewrite(TYPOGRAPHY.rewrite(PLACEBO.rewrite(text, (), seed), (), seed), (), seed)
        assert joined.rewrite(text, (), seed) == expected
        assert not inspect_turns(joined, (text,), (expected,))


def test_an_attack_may_not_take_a_joined_name() -> None:
    with pytest.raises(ValueError, match="expected a name"):
        Attack("placebo+filler", "", lambda turn, constraints, seed: turn)


@each("text, most", (GROUPS["English"]["prose"][0], 25), ("Ja", 25), ("", 0))
def test_a_response_has_many_controls(text: str, most: int) -> None:
    response = Response("x", (text,))
    case = Case("c", ("Why?",), (response,))
    result: Any = step(list_arms(case, response, 25, 0))
    arms = [arm.response.text for arm in result.value]
    assert len(arms) == len({*arms} - {text}) <= most
    assert bool(arms) == bool(most)
    fewer: Any = step(list_arms(case, response, 5, 0))
    assert [arm.response.text for arm in fewer.value] == arms[:5]
