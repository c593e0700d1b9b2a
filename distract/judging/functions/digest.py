"""The identity of a judge function: a digest of its code and of the state that it carries.

What counts is the module of the function, the user's modules that it imports, and every value that its code reaches:
closure, defaults, bound arguments, attributes and globals. Libraries count by name. Whatever else a function depends
on, such as a prompt file or a remote model, is for its ``version`` to say.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import hashlib
import inspect
import marshal
import os
import pickle
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path, PurePath
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NoReturn

from distract.core.errors import UsageError
from distract.core.printable import hide_credentials
from distract.judging.functions import modules
from distract.judging.functions.adaptation import NeighbourJudge
from distract.judging.functions.declaration import JudgeFunction

MAX_BYTES, MAX_VALUES = 64 * 2**20, 10**6
"""The bytes and the values that are read of a judge at most."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|\bdistract_\w+_[0-9a-f]{12}\.")
"""What differs between processes and machines: addresses, and modules that ``load_file`` named."""
_MADE_NAME = re.compile(r"\bdistract_\w+_[0-9a-f]{12}\b")

_IGNORED = re.compile(
    r"(?i)(?:\b|_)(?:api[-_]?key|secret_key|client_secret|authorization|(?:access|auth|bearer)_token|_module__|object_hash)\W*$"
)
"""What leads to a key, which says who asks and not what, or to what differs between processes: the name of a module,
which ``load_file`` made up, and a hash in transformers."""
Part = tuple[str, Any]
"""What leads to a value in another one, and that value."""
Parts = list[Part]
Taken = tuple[str | None, Parts]
"""What a value is, and its parts; None for a set, whose elements come in any order."""

_WRAPPERS = ((functools.partial, "func"), (MethodType, "__func__"), (object, "__wrapped__"))
"""The attribute of each kind of callable that holds the one within."""
_PLAIN = {type(None), bool, int, float, complex, str, bytes}
_CLIENTS = {"openai", "anthropic", "httpx", "httpx2"}
_HANDLES = {"_thread", "threading", "asyncio", "concurrent", "multiprocessing", "queue", "_queue", "socket", "_socket"}
_HANDLES |= {"ssl", "_ssl", "_weakref", "weakref", "_weakrefset", "_contextvars", "_abc", "logging", "_asyncio"}
_HANDLES |= {"_json", "_csv", "tqdm"}
"""Modules whose objects count by type: they hold no state that a verdict depends on."""


def identify(function: JudgeFunction, places: dict[str, bytes] | None = None) -> dict[str, str]:
    """Return everything that determines the verdicts of a function.

    ``places`` receives a digest of each value that counts, by its place.
    """
    target = unwrap(function.function)
    parts: Iterable[str]
    if function.version or not function.cache:
        # Nor are verdicts of a function that is not pure used again.
        values = _describe_literals(function.function) if function.cache else ()
        parts = (*_describe_code(target, function.origin), *values)
    else:
        parts = [State(function.name, {} if places is None else places).describe_judge(function, target).hex()]
    code = hashlib.sha256(_encode("".join(f"{len(part)}:{part}" for part in parts))).hexdigest()
    version = {"version": function.version} if function.version else {}
    return {"engine": "function", "model": function.name, "code": code, **version}


def unwrap(function: Any) -> Any:
    """Return the function or class that holds the code of a callable."""
    while hasattr(function, name := next(name for kind, name in _WRAPPERS if isinstance(function, kind))):
        function = getattr(function, name)
    is_code = inspect.isfunction(function) or inspect.isclass(function) or inspect.isbuiltin(function)
    return function if is_code else type(function)


def list_changes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """List the places of values that changed, the innermost ones."""
    changed = [place for place in {**before, **after} if place and before.get(place) != after.get(place)]
    return [one for one in changed if not any(other.startswith((f"{one}.", f"{one}[")) for other in changed)]


class State:
    """Describes values by their content, alike in every process: equal states have equal digests."""

    def __init__(self, judge: str, places: dict[str, bytes]) -> None:
        self._judge, self._places, self._path = judge, places, list[str]()
        self._sources: dict[Path, str] = {}
        self._digests, self._begun = dict[int, bytes](), dict[int, int]()  # by the address of a value
        self._kept: list[object] = []  # no other value may get the address of one of these
        self._cycles, self._bytes, self._home = 0, 0, "\0"
        words = re.compile(r"(?i).*(key|token|secret|password)")
        self._secrets = {value for name, value in os.environ.items() if words.fullmatch(name) and len(value) >= 8}

    def describe_judge(self, function: JudgeFunction, target: Any) -> bytes:
        """Describe a judge: its values, and the source of all modules that count."""
        files = [Path(function.origin)]
        if not issubclass(target if inspect.isclass(target) else type(target), NeighbourJudge):
            with contextlib.suppress(TypeError):  # that of an installed package counts only here
                files.append(Path(inspect.getsourcefile(target) or ""))
        for file in filter(Path.is_file, files):
            self._home = str(file.resolve().parent)
            self._add_source(file)
        digest = self.describe(function.function)
        # A helper of the same name and text may have been imported from another folder.
        return _hash("judge", digest, *sorted({_encode(text) for text in modules.dump_modules(self._sources)}))

    def describe(self, value: Any, label: str = "") -> bytes:
        """Describe a value; ``label`` leads to it from the one that holds it, as in ``.name`` or ``[0]``."""
        kind, address = type(value), id(value)
        self._path.append(label)
        if kind is str:
            value = _MADE_NAME.sub("", value.removeprefix(self._home))  # wherever that is
        if (_IGNORED.search(label) and not callable(value)) or (kind is str and value in self._secrets):
            digest = _hash("ignored")
        elif kind in _PLAIN:
            digest = self._hash_bytes(value, "plain", marshal.dumps(value, 2))
        elif address in self._begun:
            digest, self._cycles = _hash(f"cycle {len(self._begun) - self._begun[address]}"), self._cycles + 1
        elif address in self._digests:
            digest = self._digests[address]
        else:
            self._kept.append(value)
            if len(self._kept) > MAX_VALUES:
                self._refuse(value, f"holds more than {MAX_VALUES:,} values")
            self._begun[address] = len(self._begun)
            try:
                tag, parts = self._take(value, kind)
                if tag is None:  # a set: its elements come in any order
                    digest = _hash("set", *sorted(self._describe_apart(part) for _, part in parts))
                else:
                    digest = _hash(tag, *[self.describe(part, name) for name, part in parts])
            except UsageError:
                raise
            except Exception as error:
                is_deep = isinstance(error, RecursionError)
                self._refuse(value, "is nested too deeply to be described" if is_deep else "cannot be described")
            del self._begun[address]
            self._digests[address] = digest
        if len(self._path) <= 4 and len(self._places) < 10_000:
            self._places[self._place()] = digest
        self._path.pop()
        return digest

    def _describe_apart(self, value: object) -> bytes:
        """Describe an element of a set, whatever was described before it."""
        kept, cycles = len(self._kept), self._cycles
        digest = self.describe(value)
        if self._cycles != cycles:
            for one in self._kept[kept:]:
                self._digests.pop(id(one), None)
        return digest

    def _take(self, value: Any, kind: type) -> Taken:
        if kind in (list, tuple, dict) and len(value) > 100:
            plain = (*value, *value.values()) if kind is dict else value
            has_key = kind is dict and any(_IGNORED.search(key) for key in value if type(key) is str)
            if _PLAIN.issuperset(map(type, plain)) and not has_key:
                return self._hash_bytes(value, kind.__name__, marshal.dumps(plain, 2)).hex(), []
        if kind in (list, tuple):
            return kind.__name__, _label("[{}]", enumerate(value))
        if kind in (dict, MappingProxyType):
            return "dict", _list_items(value.items())
        if issubclass(kind, set | frozenset):
            extra = () if kind in (set, frozenset) else (kind, _list_attributes(value))
            return None, [("", part) for part in (*value, *extra)]
        if kind is functools.partial:
            given = _label("argument {}", (*enumerate(value.args, 1), *sorted(value.keywords.items())))
            return f"partial {len(value.args)} {sorted(value.keywords)}", [("", value.func), *given]
        if kind is FunctionType:
            return self._take_function(value)
        if kind is MethodType:
            return "method", [("", value.__func__), ("", value.__self__)]
        if isinstance(value, type):
            return self._take_class(value)
        if issubclass(kind, PurePath):
            return "path", [("", kind), ("", str(value))]
        if issubclass(kind, ModuleType):
            return self._take_module(value)
        if kind is ContextVar:
            with contextlib.suppress(LookupError):
                return f"variable {value.name}", [("", value.get())]
            return f"variable {value.name}", []
        if issubclass(kind, JudgeFunction) and value.version:
            return f"judge {identify(value)}", []
        if address := _find_address(value, kind):
            return _name_parts(address, [("", kind), *_list_own(value, kind)])
        return self._take_object(value, kind)

    def _take_function(self, function: Any) -> Taken:
        code, space = function.__code__, function.__globals__
        parts = _label("variable {}", _list_cells(function)) + _label("attribute {}", sorted(vars(function).items()))
        module, file = space.get("__name__"), Path(code.co_filename)
        if modules.is_library(file) if file.is_file() else modules.is_library_module(sys.modules.get(module)):
            return _name_parts(f"function {module}.{code.co_qualname}", parts)
        self._add_source(file)
        defaults = (*enumerate(function.__defaults__ or (), 1), *sorted((function.__kwdefaults__ or {}).items()))
        parts += [*_label("default {}", defaults), *self._list_globals(space, *modules.list_names(code))]
        return _name_parts(f"function {code.co_qualname}", parts, f" {modules.dump_function(code)}")

    def _take_module(self, module: ModuleType) -> Taken:
        """Take a module that a value holds apart: code may reach all in it."""
        top = sys.modules.get(module.__name__.partition(".")[0])
        if modules.is_library_module(module) or modules.is_library_module(top):
            return f"module {module.__name__}", []
        self._add_source(modules.find_file(module))
        own = [one for one in _list_attributes(module) if one[0][:3] != ".__" and not isinstance(one[1], ModuleType)]
        return _name_parts("module", own)

    def _list_globals(self, space: dict[str, Any], read: list[str], names: list[str], *above: object) -> Iterator[Part]:
        """List the globals that code reads, those of the user's modules that it names by attribute included."""
        for name in read:
            if name not in space or name[:2] == name[-2:] == "__":
                continue
            value = space[name]
            if isinstance(value, ModuleType) and (file := modules.find_file(value)):
                self._add_source(file)
                if value not in above:
                    yield from self._list_globals(vars(value), names, names, *above, value)
            else:
                yield f"global {name}", "a library's" if _is_of_library(name, value) else value

    def _take_class(self, kind: type) -> Taken:
        module = sys.modules.get(kind.__module__)
        names = kind.__qualname__.split(".")
        namesake: object = functools.reduce(lambda holder, name: getattr(holder, name, None), names, module)
        is_named = modules.is_library_module(module) and (namesake is kind or hasattr(module, "__file__"))
        if not kind.__flags__ & 1 << 9 or is_named:  # 1 << 9: made by `class`
            return f"class {kind.__module__}.{kind.__qualname__}", []
        self._add_source(file := modules.find_file(module))
        parts: Parts = [("", base) for base in (type(kind), *kind.__bases__)]
        for name, part in sorted(vars(kind).items()):
            for one in _unwrap_descriptor(part):
                is_left_out = one is part and name[:2] == name[-2:] == "__"
                if isinstance(one, FunctionType):  # those that a decorator makes follow from the rest
                    is_left_out = (file and one.__code__.co_filename.startswith("<")) or "__annotate" in name
                parts += [] if is_left_out else [(f"class {kind.__qualname__}.{name}", one)]
            if name in ("__dataclass_fields__", "__pydantic_fields__"):
                kept = ("default", "default_factory", "metadata")
                parts += [("", [field, *(getattr(one, kind, None) for kind in kept)]) for field, one in part.items()]
        return _name_parts(f"class {kind.__qualname__}", parts)

    def _take_object(self, value: Any, kind: type) -> Taken:
        """Take an object apart as ``pickle`` does."""
        if kind in (pickle.PickleBuffer, memoryview):
            view = memoryview(value)
            return self._hash_bytes(value, f"{view.format} {view.shape}", view.tobytes()).hex(), []
        self._spend(value, getattr(value, "nbytes", 0) if hasattr(kind, "nbytes") else 0)
        if any(f"{base.__module__}.{base.__qualname__}" == "torch.Tensor" for base in kind.__mro__):
            flat = value.detach().cpu().contiguous().reshape(-1)
            text = f"tensor {value.dtype} {[*value.shape]}"
            return self._hash_bytes(value, text, flat.view(sys.modules["torch"].uint8).numpy()).hex(), [("", kind)]
        if kind.__module__ == "pydantic.type_adapter":  # its schemas name addresses
            return "adapter", [("", value._type), ("", value._config)]
        reduce = copyreg.dispatch_table.get(kind)
        reduced: str | tuple[Any, ...] = reduce(value) if reduce else value.__reduce_ex__(5)
        if isinstance(reduced, str):
            module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
            name = getattr(module, "__name__", "") if modules.is_library_module(module) else ""
            self._add_source(modules.find_file(module))  # one that is compiled has no functions to look into
            return f"named {name}.{reduced}", [("", kind), *_list_attributes(value)]
        function, arguments, state, listed, mapped = (*reduced, None, None, None)[:5]
        items, pairs = [*(listed or ())], [*(mapped or ())]
        parts = [("", function), ("", arguments), ("", items), *_list_items(pairs)]
        states = state if type(state) is tuple and len(state) == 2 else (state,)  # attributes, and those in slots
        for one in states:
            if type(one) is dict and all(type(key) is str for key in one):
                ids = {*map(id, one.values())}  # scikit-learn keeps one
                named = [(key, one[key]) for key in sorted(one) if type(one[key]) is not int or one[key] not in ids]
                parts += [pair for key, part in named for pair in (("", key), (f".{key}", part))]
            else:
                parts.append(("", one))
        return f"object {len(items)} {len(pairs)} {len(parts)}", parts

    def _add_source(self, file: Path | None) -> None:
        if file and file.is_file() and file.resolve() not in self._sources:
            self._sources |= modules.list_modules(file, is_wide=True)

    def _hash_bytes(self, value: object, tag: str, data: Any) -> bytes:
        self._spend(value, len(data))
        self._bytes += len(data) if len(data) > 4096 else 0
        return _hash(tag, data)

    def _spend(self, value: object, size: int) -> None:
        """Refuse a value before it is copied."""
        if size > 4096 and self._bytes + size > MAX_BYTES:
            self._refuse(value, f"holds more than {MAX_BYTES >> 20} MB")

    def _place(self) -> str:
        starts = [index for index, label in enumerate(self._path) if " " in label.partition("[")[0]]
        text = "".join(self._path[starts[-1] if starts else 0 :])
        return (f"attribute {text[1:]}" if text.startswith(".") else text)[:80]

    def _refuse(self, value: object, problem: str) -> NoReturn:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise UsageError(
            f"judge {self._judge}: {f'{self._place()} ({kind})' if self._place() else f'a {kind}'} {problem}, so a "
            'change of it would go unseen; declare a version with @distract.judge(version="1")'
        )


def _hash(tag: str, *parts: Any) -> bytes:
    digest = hashlib.sha256(_encode(tag))
    for part in parts:
        digest.update(f"|{len(part)}|".encode())
        digest.update(part)
    return digest.digest()


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _is_of_library(name: str, value: object) -> bool:
    """Tell whether a library has an object under the same name, so that it was imported from there."""
    if type(value) in _PLAIN or isinstance(value, FunctionType | type):
        return False
    holders = [one for one in [*sys.modules.values()] if getattr(one, "__dict__", {}).get(name) is value]
    return any(modules.is_library_module(one) for one in holders)


def _label(form: str, named: Iterable[tuple[object, Any]]) -> Parts:
    return [(form.format(name), part) for name, part in named]


def _name_parts(tag: str, parts: Parts, end: str = "") -> Taken:
    return f"{tag} {[name for name, _ in parts]}{end}", parts


def _list_items(items: Iterable[tuple[Any, Any]]) -> Parts:
    named = [(ascii(key)[:40] if type(key) in _PLAIN else "", key, part) for key, part in items]
    return [pair for name, key, part in named for pair in (("", key), (f"[{name}]", part))]


def _list_attributes(value: object) -> Parts:
    return _label(".{}", sorted(getattr(value, "__dict__", {}).items()))


def _list_own(value: Any, kind: type) -> Parts:
    """List the attributes of a client, thread or the like that the methods of a user's class name."""
    own = [base for base in kind.__mro__ if modules.find_file(sys.modules.get(base.__module__))]
    functions = [one for base in own for one in vars(base).values() if isinstance(one, FunctionType)]
    names = {name for function in functions for name in modules.list_names(function.__code__)[1]}
    return [pair for pair in _list_attributes(value) if pair[0].lstrip(".") in names]


def _list_cells(function: Any) -> Parts:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    # One that is not filled yet equals an empty one.
    return [(name, ... if cell == CellType() else cell.cell_contents) for name, cell in cells]


def _unwrap_descriptor(value: Any) -> list[Any]:
    """List what a descriptor of a library holds; a value that is none stays as it is."""
    is_own = modules.find_file(sys.modules.get(type(value).__module__))
    if isinstance(value, FunctionType) or is_own or not hasattr(type(value), "__get__"):
        return [value]
    names = ("__func__", "__self__", "fget", "fset", "fdel", "func", "args", "keywords", "dispatcher", "__wrapped__")
    return [part for name in names if (part := getattr(value, name, None)) is not None]


def _find_address(value: Any, kind: type) -> str:
    """Describe a client, a logger, a lock, a thread or an open file by its type and address; empty for others."""
    tops = {str(base.__module__).partition(".")[0] for base in kind.__mro__}
    if tops & _CLIENTS and hasattr(kind, "base_url"):
        return f"client {hide_credentials(str(value.base_url).partition('?')[0])}"
    if "_io" in tops and hasattr(value, "name"):
        return f"file {value.name} {getattr(value, 'mode', '')}"
    if "ctypes" in tops and hasattr(value, "_name"):
        return f"library {value._name}"
    named = [base for base in kind.__mro__ if "Logger" in base.__qualname__]
    if any(modules.is_library_module(sys.modules.get(base.__module__)) for base in named):
        return f"logger {_MADE_NAME.sub('', str(getattr(value, 'name', '')))}"
    return "handle" if (tops & _HANDLES and "enum" not in tops) or kind is type(os.environ) else ""


def _describe_code(target: Any, origin: str = "") -> list[str]:
    """Describe the code behind a function or class, if there is any, and that of the file that names it."""
    named = modules.list_modules(Path(origin)) if origin else {}
    if inspect.isclass(target) and issubclass(target, NeighbourJudge):  # the framework's version stands for its code
        return modules.dump_modules(named)
    try:
        file = Path(inspect.getsourcefile(target) or "")
    except TypeError:
        return []
    if file.is_file():
        of_names = {name: path for path, name in {**named, **modules.list_modules(file)}.items()}
        return modules.dump_modules({path: name for name, path in of_names.items()})
    try:  # typed into a notebook
        return [modules.dump_source(textwrap.dedent(inspect.getsource(target)).encode())]
    except (OSError, TypeError, SyntaxError):
        return [modules.dump_bytecode(target.__code__)] if inspect.isfunction(target) else []


def _describe_literals(function: Any) -> Iterator[str]:
    """Describe the literals that a callable with a version carries; its version stands for other values."""
    values, inner = (function,), None
    if isinstance(function, functools.partial):
        values, inner = (*function.args, *sorted(function.keywords.items())), function.func
    elif inspect.ismethod(function):
        values, inner = (function.__self__,), function.__func__
    elif inspect.isfunction(function):
        yield function.__qualname__
        cells = (part for name, part in _list_cells(function))
        values = (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items()), *cells)
    elif inspect.isbuiltin(function):
        return
    yield from map(_describe_literal, values)
    yield from _describe_literals(inner) if inner else ()


def _describe_literal(value: Any) -> str:
    if inspect.isfunction(value) or inspect.ismethod(value) or isinstance(value, functools.partial):
        return "\n".join((*_describe_code(unwrap(value)), *_describe_literals(value)))
    if isinstance(value, NeighbourJudge) or _is_literal(value):
        return _ADDRESS.sub("", repr(value))
    own: object = type(value).__repr__
    if own is not object.__repr__:
        return ""
    values = [pair for pair in sorted(vars(value).items()) if _is_literal(pair)] if hasattr(value, "__dict__") else ""
    return f"{type(value).__qualname__} {values}"


def _is_literal(value: object, depth: int = 20) -> bool:
    parts = value.items() if type(value) is dict else value
    is_whole = type(value) in (tuple, list, dict) and depth > 0  # one may hold itself
    return type(value) in _PLAIN or (is_whole and all(_is_literal(part, depth - 1) for part in parts))  # type: ignore[attr-defined]
