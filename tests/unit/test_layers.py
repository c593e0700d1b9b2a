"""Layering rule: imports point down, ``TYPE_CHECKING`` included. Modules are parsed with ``ast``, not imported."""

import ast
import tomllib
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ("judges", "attacks", "leaderboards")
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
PUBLIC_PACKAGE, TABLE = "distract", "_MODULES"
ENTRY_POINTS = (PUBLIC_PACKAGE, "distract.__main__")

LAYERS = (
    ("cli", "testing"),
    ("studies",),
    ("report", "rewriting"),
    ("judging",),
    ("models", "data", "stats"),
    ("core",),
)
"""The layers from top to bottom. Each package is a folder of ``distract`` and may import only from lower layers."""

SEEN = {plugins: ("core", "data", "judging", "stats", "rewriting", plugins) for plugins in PLUGINS}
"""The packages that plug-ins may import from."""

FOUNDATIONS = ("measures", "attack", "anchors")
"""The studies on which others build."""

REGISTRY = "distract.core.registry"
"""The module that finds plug-ins and studies at run time, by the name of their folder."""


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package by its name, plug-ins included."""
    folders = {"distract": root / "distract", **{f"distract.{name}": root / name for name in PLUGINS}}
    return {
        ".".join((name, *(part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"))): path
        for name, folder in folders.items()
        for path in sorted(folder.rglob("*.py"))
    }


def public() -> dict[str, str]:
    """The defining module of each public name."""
    tree = ast.parse((ROOT / "distract" / "__init__.py").read_text())
    tables = [one.value for one in tree.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == TABLE]
    (table,) = map(ast.literal_eval, tables)
    return dict(table)


def imports(name: str, path: Path, known: Set[str]) -> Iterator[str]:
    """The modules of distract that a module imports, at any place in its code.

    A name imported from ``distract`` counts as imported from its defining module.
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


@cache
def graph() -> dict[str, set[str]]:
    """The modules that each module imports; the public package only maps names to modules and imports them lazily."""
    return {
        name: set() if name == PUBLIC_PACKAGE else {*imports(name, path, FILES.keys())} - {name}
        for name, path in FILES.items()
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


def package_of(name: str) -> str:
    """The package of a module: a folder of ``distract``; each study is its own package, and ``studies`` is shared."""
    parts = name.split(".")[1:]
    assert parts, f"{name} is in no package"
    if parts[0] != "studies" or len(parts) == 1:
        return parts[0]
    place = ROOT / "distract" / "studies" / parts[1]
    return "/".join(parts[:2]) if place.is_dir() or "\nSTUDY" in place.with_suffix(".py").read_text() else parts[0]


def package_imports(edges: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """The imports between packages."""
    merged: dict[str, set[str]] = {}
    for name, others in edges.items():
        if name not in ENTRY_POINTS:
            merged.setdefault(package_of(name), set()).update(
                {package_of(other) for other in others} - {package_of(name)}
            )
    return merged


def is_allowed(importer: str, imported: str) -> bool:
    """Whether a package may import from another."""
    if importer in SEEN:
        return imported in SEEN[importer]
    height = {one: len(LAYERS) - at for at, layer in enumerate(LAYERS) for one in layer}
    parts, its = importer.split("/"), imported.split("/")
    if parts[0] == its[0] == "studies":
        return len(its) == 1 or (len(parts) > 1 and its[1] in FOUNDATIONS)
    return its[0] in height and height[its[0]] < height[parts[0]]


def find_upward(edges: Mapping[str, Set[str]]) -> set[tuple[str, str]]:
    """Imports that the layering rule forbids."""
    return {
        (name.removeprefix("distract."), other.removeprefix("distract."))
        for name, others in edges.items()
        if name not in ENTRY_POINTS
        for other in others
        if package_of(name) != package_of(other) and not is_allowed(package_of(name), package_of(other))
    }


def steps_by_hand(source: str) -> bool:
    """Whether code steps a plan itself instead of using ``plan.drive``, ``plan.tap`` or ``plan.gather``."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return "StopIteration" in names or any(isinstance(node, ast.Attribute) and node.attr == "send" for node in nodes)


PUBLIC = public()
FILES = modules()


def test_files_form_no_cycle() -> None:
    assert cycles(graph()) == []


def test_packages_form_no_cycle() -> None:
    assert cycles(package_imports(graph())) == []


def test_imports_point_down() -> None:
    assert find_upward(graph()) == set()


@pytest.mark.parametrize(
    ("importer", "imported"),
    [("distract.core.store", "distract.studies.gate.live"), ("distract.core.loop", "distract.core.flow")],
)
def test_upward_import_is_detected(importer: str, imported: str) -> None:
    edges = {name: set(others) for name, others in graph().items()}
    edges[importer].add(imported)
    edges[imported].add(importer)
    assert cycles(edges) != []


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        ("from distract import attack", "distract.cli.api"),
        ("from distract import Case as Kase", "distract.core.records"),
        ("from distract import instructions", "distract.judging.instructions"),
        ("from distract.studies.attack import flips", "distract.studies.attack.flips"),
        ("from distract import __version__", "distract"),
        ("def f():\n    return distract.attack", "distract.cli.api"),
        ("def f():\n    return importlib.import_module('distract.cli.api')", "distract.cli.api"),
    ],
)
def test_public_name_counts_as_its_module(code: str, imported: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)
    assert [*imports("distract.judges.mine", tmp_path / "mine.py", FILES.keys())] == [imported]


def test_every_package_has_a_layer_and_entries_are_few() -> None:
    folder = ROOT / "distract"
    entries = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
    assert {one for one in entries if (folder / one).is_dir()} == {package for layer in LAYERS for package in layer}
    assert len(entries) <= 13


def test_plugin_sees_no_study_through_the_public_api() -> None:
    edges = {"distract.judges.mine": {PUBLIC["attack"]}, "distract.attacks.mine": {PUBLIC["Case"]}}
    assert find_upward(edges) == {("judges.mine", "cli.api")}


@pytest.mark.parametrize("path", [*(path for name in PLUGINS for path in (ROOT / name).rglob("*.py")), *EXAMPLES])
def test_plugins_and_examples_import_only_from_distract(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        assert [name for name in names if name.startswith("distract.")] == []
        if isinstance(node, ast.ImportFrom) and node.module == "distract":
            assert {alias.name for alias in node.names} <= PUBLIC.keys()


def test_plans_are_stepped_in_one_place() -> None:
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
def test_plan_stepped_by_hand_is_detected(source: str, is_stepping: bool) -> None:
    assert steps_by_hand(source) == is_stepping


def test_pyproject_lists_every_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name if path.name == "__init__.py" else name.rpartition(".")[0] for name, path in FILES.items()}
    assert {*project["tool"]["setuptools"]["packages"]} == packages
