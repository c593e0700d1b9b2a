"""The source of code: of modules, of what they import, and of one function among them.

Comments, layout and docstrings do not count.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import linecache
import marshal
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType

_LIBRARIES = (
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")),
    Path(__file__).resolve().parents[2],
)


@functools.lru_cache(4096)
def is_library(file: Path) -> bool:
    """Tell whether a file belongs to Python, to an installed package or to distract, and not to the user."""
    file = file.resolve()
    return bool({"site-packages", "dist-packages"} & {*file.parts}) or any(root in file.parents for root in _LIBRARIES)


def find_file(module: ModuleType | None) -> Path | None:
    """Find the file of a user's module; None for a library's, and for one without a file."""
    file = getattr(module, "__file__", None)
    return Path(file) if file and Path(file).is_file() and not is_library(Path(file)) else None


def is_library_module(module: ModuleType | None) -> bool:
    """Tell whether a module belongs to Python, to an installed package or to distract."""
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    if place := next(filter(None, places), None):
        return is_library(Path(place))
    return getattr(module, "__name__", "").partition(".")[0] in sys.stdlib_module_names


def list_modules(file: Path, is_wide: bool = False) -> dict[Path, str]:
    """List a module and all that it imports from its own folder or package, with their path in it.

    ``is_wide`` adds what it imports from other folders of the user on ``sys.path``, and through ``importlib``.
    """
    file = file.resolve()
    modules, waiting = dict[Path, str](), [(file, *_locate(file))]
    while waiting:
        path, base, home = waiting.pop()
        if path in modules:
            continue
        modules[path] = path.relative_to(base).as_posix()
        inits = (init for above in path.parents if (init := above / "__init__.py").is_file() and above != base)
        for other in (*inits, *_find_imports(path, base, is_wide)):
            if other.is_relative_to(home):
                waiting.append((other, base, home))
            elif is_wide and not is_library(other):
                waiting.append((other, *_locate(other)))
    return modules


def _locate(file: Path) -> tuple[Path, Path]:
    """Return the folder that a module is imported from, and the folder or package that it belongs to."""
    base = file.parent
    while (base / "__init__.py").exists():
        base = base.parent
    is_installed = base.name in ("site-packages", "dist-packages")
    return base, base / file.relative_to(base).parts[0] if is_installed or base != file.parent else base


def _find_imports(path: Path, base: Path, is_wide: bool) -> Iterator[Path]:
    try:
        imports = _read(path.read_bytes())[1]
    except (SyntaxError, ValueError):
        return  # importing it reports that
    others = [folder for entry in sys.path if not is_library(folder := Path(entry or ".").resolve())] if is_wide else []
    for level, name, is_called in imports:
        starts = [path.parents[level - 1]] if 0 < level <= len(path.parents) else [base, *others]
        if is_wide or not is_called:
            yield from next(filter(None, ([*_list_files(start, name)] for start in starts)), ())


def _list_files(place: Path, name: str) -> Iterator[Path]:
    for part in name.split("."):
        place = place / part
        yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())


@functools.lru_cache(256)
def _read(source: bytes) -> tuple[str, list[tuple[int, str, bool]]]:
    """Return the dump of a source and its imports: the level and name of each, and whether a call imports it."""
    tree, imports = ast.parse(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, False) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports += [(node.level, f"{node.module or ''}.{one.name}".lstrip("."), False) for one in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTERS:
            texts = [part.value for part in node.args[:1] if isinstance(part, ast.Constant) and type(part.value) is str]
            names = [(len(text) - len(text.lstrip(".")), text.lstrip(".")) for text in texts]
            imports += [(level, name, True) for level, name in names if name.replace(".", "_").isidentifier()]
        elif isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree), imports


def _list_inner(code: CodeType) -> list[CodeType]:
    """List code and that of every function and class in it, in an order that layout does not change."""
    codes = [code]
    for one in codes:
        codes += [part for part in one.co_consts if isinstance(part, CodeType)]
    return codes


@functools.lru_cache(256)
def _list_code(source: bytes) -> list[CodeType]:
    return _list_inner(compile(source, "", "exec", dont_inherit=True))


def dump_source(source: bytes) -> str:
    """Dump what counts of a source."""
    return _read(source)[0]


def dump_modules(modules: dict[Path, str]) -> list[str]:
    """Dump what counts of modules; of one that is no valid Python, such as a compiled one, every byte does."""
    dumps = []
    for path, name in modules.items():
        source = path.read_bytes()
        try:
            dumps.append(f"{name}\n{dump_source(source)}")
        except (SyntaxError, ValueError):
            dumps.append(f"{name}\n{hashlib.sha256(source).hexdigest()}")
    return sorted(dumps)


def dump_function(code: CodeType) -> str:
    """Dump the source of a function and its place there, or its instructions if it is not from there."""
    try:
        file = Path(code.co_filename)
        source = file.read_bytes() if file.is_file() else "".join(linecache.getlines(code.co_filename)).encode()
        return f"{_list_code(source).index(code)} {dump_source(source)}"
    except (OSError, SyntaxError, ValueError):
        return dump_bytecode(code)


def dump_bytecode(code: CodeType) -> str:
    """Dump a function typed at a prompt or piped into Python, which keeps no source."""
    code = code.replace(co_filename="", co_firstlineno=1, co_linetable=b"")
    # Later formats of marshal depend on what else refers to a constant.
    return f"{sys.version_info[:2]} {hashlib.sha256(marshal.dumps(code, 2)).hexdigest()}"


@functools.lru_cache(4096)
def list_names(code: CodeType) -> tuple[list[str], list[str]]:
    """List the globals that a function reads, and every name in it, those of attributes included."""
    codes = _list_inner(code)
    read = {step.argval for one in codes for step in dis.get_instructions(one) if step.opname in _READS}
    return sorted(read), sorted({name for one in codes for name in one.co_names})


_DOCUMENTED = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_IMPORTERS = ("import_module", "__import__")
_READS = ("LOAD_GLOBAL", "LOAD_NAME")
