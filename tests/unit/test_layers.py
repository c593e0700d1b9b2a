"""The law of floors: imports point down, ``TYPE_CHECKING`` included. Read with ``ast``; nothing is imported."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ("judges", "attacks", "leaderboards")
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
FACE, TABLE = "distract", "_MODULES"

FLOORS = (
    ("cli", "testing"),
    ("studies",),
    ("report", "rewriting"),
    ("judging",),
    ("models", "data", "stats"),
    ("core",),
)
"""From the top; a room sees the floors below its own."""

ROOMS: Mapping[str, str] = {
    "core": """
        __init__ backend backends.options bounds claims definitions errors exchange files flow job listener occupancy
        plan price printable probes prompts ratings recorder records registry replyfile run runfolder runrecords
        settings signals store study tally timing
    """,
    "data": "amounts constraints datasets lexicon",
    "models": "backends families",
    "stats": "agreement figure statistics",
    "judging": "consultation findings judging manner reading replay rubric verdicts",
    "rewriting": "facts fidelity meaning speech writers",
    "report": "report",
    "studies": """
        audit boards briefs checking consistency counting document estimating execution explaining flips making meta
        metrics minimal ranking recording reopening rewrite_metrics scope session setup studies tournament report.boards
        report.checks report.consistency report.leaderboard report.meta report.minimal report.panel report.ranking
        report.terminal report.written
    """,
    "testing": "invariants pytest_plugin strategies report.testing",
    "cli": "__main__ api arguments cli commands frames",
    "plugins": "judges attacks leaderboards",
}
"""Which room each module or folder of ``distract`` belongs to; the longest name counts."""

ENTERED: Mapping[str, tuple[str, ...]] = {"plugins": ("core", "judging", "stats", "rewriting", "data")}
"""What a room sees that stands on no floor."""

OFFENCES = frozenset(
    {
        ("backends.openai_answers", "reading"),  # which of several labels an answer means
        ("report.progress", "estimating"),
    }
)
"""Imports that point up. The list may only shrink."""

REGISTRY = "distract.core.registry"
"""Finds plug-ins and studies at run time, by the name of their folder."""


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package by its name, plug-ins included."""
    folders = {"distract": root / "distract", **{f"distract.{name}": root / name for name in PLUGINS}}
    return {
        ".".join((name, *(part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"))): path
        for name, folder in folders.items()
        for path in sorted(folder.rglob("*.py"))
    }


def public() -> dict[str, str]:
    """The module that defines each name which ``distract`` offers."""
    tree = ast.parse((ROOT / "distract" / "__init__.py").read_text())
    tables = [one.value for one in tree.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == TABLE]
    (table,) = map(ast.literal_eval, tables)
    return dict(table)


def imports(name: str, path: Path, known: Set[str]) -> Iterator[str]:
    """The modules of ours that a module imports, wherever in it and for whatever reason.

    What is imported from ``distract`` counts as imported from where it is defined.
    """
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "distract" and node.attr in PUBLIC:
            yield PUBLIC[node.attr]
        elif name != REGISTRY and isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            values = [one.value for one in node.args if isinstance(one, ast.Constant)]
            yield from (one for one in values if isinstance(one, str) and one in known)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                if base == "distract" and alias.name in PUBLIC:
                    yield PUBLIC[alias.name]
                elif (target := f"{base}.{alias.name}") in known or (target := base) in known:
                    yield target


def graph(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """What each module imports of the others; the face only names what others define, and imports it when asked."""
    return {
        name: set() if name == FACE else {*imports(name, path, files.keys())} - {name} for name, path in files.items()
    }


def cycles(edges: Mapping[str, Set[str]]) -> list[list[str]]:
    """Groups of names that reach each other (Tarjan's components of two and more)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(edges.get(name, ())):
            if other not in order:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            at = stack.index(name)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                groups.append(sorted(group))

    for name in sorted(edges):
        if name not in order:
            visit(name)
    return groups


def folders(edges: Mapping[str, Set[str]], files: Mapping[str, Path]) -> dict[str, set[str]]:
    """The same between folders; a module at the root of ``distract`` stands for itself."""

    def folder(name: str) -> str:
        parent = files[name].parent
        return name if parent == ROOT / "distract" else str(parent.relative_to(ROOT))

    merged: dict[str, set[str]] = {}
    for name, others in edges.items():
        mine = merged.setdefault(folder(name), set())
        mine |= {folder(other) for other in others} - {folder(name)}
    return merged


def room(name: str) -> str:
    """The room of a module."""
    places = {place: one for one, names in ROOMS.items() for place in names.split()}
    parts = (name.removeprefix("distract").removeprefix(".") or "__init__").split(".")
    place = next((place for n in range(len(parts), 0, -1) if (place := ".".join(parts[:n])) in places), None)
    assert place, f"{name} stands in no room: name it in ROOMS"
    return places[place]


def upward(edges: Mapping[str, Set[str]]) -> set[tuple[str, str]]:
    """Imports of a room that the law does not allow."""
    height = {one: len(FLOORS) - at for at, floor in enumerate(FLOORS) for one in floor}
    arrows = set()
    for name, others in edges.items():
        for other in others:
            mine, its = room(name), room(other)
            if mine == its:
                continue
            allowed = its in ENTERED[mine] if mine in ENTERED else its in height and height[its] < height[mine]
            if not allowed:
                arrows.add((name.removeprefix("distract."), other.removeprefix("distract.")))
    return arrows


def steps_by_hand(source: str) -> bool:
    """Whether code steps a generator, rather than leave that to ``plan.drive``, ``plan.tap`` and ``plan.gather``."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return "StopIteration" in names or any(isinstance(node, ast.Attribute) and node.attr == "send" for node in nodes)


PUBLIC = public()
FILES = modules()
EDGES = graph(FILES)


def test_no_cycle_of_files() -> None:
    assert cycles(EDGES) == []


def test_no_cycle_of_folders() -> None:
    assert cycles(folders(EDGES, FILES)) == []


def test_imports_point_down() -> None:
    assert upward(EDGES) - OFFENCES == set()


def test_the_list_of_offences_only_shrinks() -> None:
    assert OFFENCES - upward(EDGES) == set()


@pytest.mark.parametrize(
    ("importer", "imported"),
    [("distract.core.store", "distract.studies.gate.live"), ("distract.core.loop", "distract.core.flow")],
)
def test_an_import_upward_is_noticed(importer: str, imported: str) -> None:
    edges = {name: set(others) for name, others in EDGES.items()}
    edges[importer].add(imported)
    edges[imported].add(importer)
    assert cycles(edges) != []


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        ("from distract import attack", "distract.cli.api"),
        ("from distract import Case as Kase", "distract.core.records"),
        ("from distract.judging import instructions as rubric", "distract.judging.instructions"),
        ("from distract.studies import explain as minimal", "distract.studies.attack.minimal"),
        ("from distract import __version__", "distract"),
        ("def f():\n    return distract.attack", "distract.cli.api"),
        ("def f():\n    return importlib.import_module('distract.cli.api')", "distract.cli.api"),
    ],
)
def test_a_public_name_counts_as_its_module(code: str, imported: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)
    assert [*imports("distract.judges.mine", tmp_path / "mine.py", FILES.keys())] == [imported]


def test_a_module_without_a_room_is_named() -> None:
    with pytest.raises(AssertionError, match=r"distract\.newroom stands in no room"):
        room("distract.newroom")


def test_every_module_has_a_room() -> None:
    assert {*map(room, FILES)} <= {*ROOMS}


def test_a_plugin_sees_no_study_through_the_face() -> None:
    edges = {"distract.judges.mine": {PUBLIC["attack"]}, "distract.attacks.mine": {PUBLIC["Case"]}}
    assert upward(edges) == {("judges.mine", "api")}


@pytest.mark.parametrize("path", [*(path for name in PLUGINS for path in (ROOT / name).rglob("*.py")), *EXAMPLES])
def test_plugins_and_examples_import_from_distract_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        assert [name for name in names if name.startswith("distract.")] == []
        if isinstance(node, ast.ImportFrom) and node.module == "distract":
            assert {alias.name for alias in node.names} <= PUBLIC.keys()


def test_plans_are_stepped_in_one_place_only() -> None:
    assert [name for name, path in FILES.items() if steps_by_hand(path.read_text())] == ["distract.core.plan"]


@pytest.mark.parametrize(
    ("source", "is_stepping"),
    [
        ("asked = plan.send(replies)", True),
        ("try:\n    next(plan)\nexcept StopIteration as done:\n    result = done.value", True),
        ("with suppress(StopIteration):\n    next(plan)", True),
        ("result = yield from plan", False),
        ("result = drive(plan, answer)  # not plan.send(...)", False),
    ],
)
def test_a_plan_stepped_by_hand_is_noticed(source: str, is_stepping: bool) -> None:
    assert steps_by_hand(source) == is_stepping


def test_every_package_is_named_in_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name if path.name == "__init__.py" else name.rpartition(".")[0] for name, path in FILES.items()}
    assert {*project["tool"]["setuptools"]["packages"]} == packages
