"""Import a Python file of the user's own as a module, with every fault in one line."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from distract.core.errors import PLUGIN_ERRORS, DataError, UsageError, describe_error, redirect_output


def load_file(path: Path) -> ModuleType:
    """Import a file as a module of its own, with its folder importable, as when Python runs it."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; name a Python file")
    file = path.resolve()
    name = f"distract_{file.stem}_{hashlib.sha256(os.fsencode(file) + (source := file.read_bytes())).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    try:
        with redirect_output():
            # Not by the loader: its bytecode stays when an edit within a second leaves the length as it was.
            exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, PLUGIN_ERRORS):
            raise
        raise import_error(path, error) from error
    return module


def import_error(place: object, error: BaseException) -> DataError:
    """Describe an error on import, with the line of the file."""
    if isinstance(error, SyntaxError):
        return DataError(f"is not valid Python: {error.msg}", path=error.filename or place, line=error.lineno)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(str(place))]
    return DataError(f"cannot be imported: {describe_error(error)}", path=place, line=lines[-1] if lines else None)
