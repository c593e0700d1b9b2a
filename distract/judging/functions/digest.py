"""The identity of a judge function: a digest of the code behind it.

Comments, layout and docstrings do not count. What counts is the module of the function, the modules that it imports
from its own folder, and the values that the function carries (closure, defaults, bound arguments). Whatever else a
function depends on, such as a prompt file or a remote model, is for its ``version`` to say.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import marshal
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distract.core.errors import UsageError
from distract.judging.functions.adaptation import NeighbourJudge
from distract.judging.functions.declaration import JudgeFunction

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|\bdistract_\w+_[0-9a-f]{12}\.")
"""What differs between processes and machines: addresses, and modules that ``load_file`` named."""


def identify(function: JudgeFunction) -> dict[str, str]:
    """Return everything that determines the verdicts of a function."""
    digest = hashlib.sha256()
    target = unwrap(function.function)
    code = _describe_code(target, function.origin)
    if code is None and not function.version:
        raise UsageError(
            f"judge {function.name}: its source cannot be read, so a change of it would go unseen; declare a version "
            'with @distract.judge(version="1")'
        )
    # The values of a function that is not pure may change with every call, and none of its verdicts is used again.
    values = _describe_values(function.function) if function.cache else ()
    for part in (*(code or ()), *values):
        digest.update(f"{len(part)}:{part}".encode(errors="surrogatepass"))
    version = {"version": function.version} if function.version else {}
    return {"engine": "function", "model": function.name, "code": digest.hexdigest(), **version}


def unwrap(function: Any) -> Any:
    """Return the function or class that holds the code of a callable."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, JudgeFunction):
            function = function.function
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            break
    is_code = inspect.isfunction(function) or inspect.isclass(function) or inspect.isbuiltin(function)
    return function if is_code else type(function)


def _describe_code(target: Any, origin: str = "") -> list[str] | None:
    """Describe the code behind a function or class, and that of the file that names it; None if there is none."""
    named = list_modules(Path(origin)) if origin else {}
    if inspect.isclass(target) and issubclass(target, NeighbourJudge):  # the framework's version stands for its code
        return _dump_modules(named)
    try:
        file = Path(inspect.getsourcefile(target) or "")
    except TypeError:
        return None
    if file.is_file():
        return _dump_modules({**named, **list_modules(file)})
    try:  # typed into a notebook
        return [_dump(ast.parse(textwrap.dedent(inspect.getsource(target))))]
    except (OSError, TypeError, SyntaxError):
        return _describe_bytecode(target)


def _describe_bytecode(target: Any) -> list[str] | None:
    """Describe a function typed at a prompt or piped into Python, which keeps no source; None for anything else."""
    if not inspect.isfunction(target):
        return None
    code = target.__code__.replace(co_filename="", co_firstlineno=1, co_linetable=b"")
    # Later formats of marshal depend on what else refers to a constant.
    return [f"{sys.version_info[:2]} {hashlib.sha256(marshal.dumps(code, 2)).hexdigest()}"]


def _dump_modules(modules: dict[str, Path]) -> list[str]:
    return [f"{name}\n{_dump(ast.parse(path.read_bytes()))}" for name, path in sorted(modules.items())]


def list_modules(file: Path) -> dict[str, Path]:
    """List a module and all that it imports from its own folder or package, by their path in it."""
    file = file.resolve()
    base = file.parent
    while (base / "__init__.py").exists():
        base = base.parent
    is_installed = base.name in ("site-packages", "dist-packages")
    home = base / file.relative_to(base).parts[0] if is_installed or base != file.parent else base
    modules, waiting = dict[str, Path](), [file]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(base).as_posix()
        if name in modules or not (path == home or home in path.parents):
            continue
        modules[name] = path
        waiting.extend(init for above in path.parents if (init := above / "__init__.py").is_file() and above != base)
        waiting.extend(_find_imports(path, base))
    return modules


def _find_imports(path: Path, base: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # importing it reports that
    for node in ast.walk(tree):
        names: list[tuple[Path, str]] = []
        if isinstance(node, ast.Import):
            names = [(base, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else base
            module = node.module or ""
            names = [(start, ".".join(filter(None, (module, alias.name)))) for alias in node.names]
        for start, name in names:
            place = start
            for part in name.split("."):
                place = place / part
                yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())


class _Stripper(ast.NodeTransformer):
    """Removes docstrings."""

    def visit(self, node: ast.AST) -> Any:
        """Visit a node and what it contains."""
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            head = node.body[0] if node.body else None
            if isinstance(head, ast.Expr) and isinstance(head.value, ast.Constant) and type(head.value.value) is str:
                node.body = node.body[1:] or [ast.Pass()]
        return node


def _dump(tree: ast.AST) -> str:
    return ast.dump(_Stripper().visit(tree))


def _describe_values(function: Any) -> Iterator[str]:
    """Describe the values that a callable carries, in the same way in every process."""
    if isinstance(function, functools.partial):
        for value in (*function.args, *sorted(function.keywords.items())):
            yield _describe(value)
        yield from _describe_values(function.func)
    elif inspect.ismethod(function):
        yield _describe(function.__self__)
        yield from _describe_values(function.__func__)
    elif inspect.isfunction(function):
        yield function.__qualname__
        for value in (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())):
            yield _describe(value)
        for cell in function.__closure__ or ():
            try:
                yield _describe(cell.cell_contents)
            except ValueError:  # not filled yet
                yield ""
    elif not inspect.isbuiltin(function):
        yield _describe(function)


def _describe(value: object) -> str:
    if inspect.isfunction(value) or inspect.ismethod(value) or isinstance(value, functools.partial):
        return "\n".join((*(_describe_code(unwrap(value)) or ()), *_describe_values(value)))
    text = repr(value)
    if type(value).__repr__ is object.__repr__:
        text = f"{type(value).__qualname__} {sorted(vars(value).items()) if hasattr(value, '__dict__') else ''}"
    return _ADDRESS.sub("", text)
