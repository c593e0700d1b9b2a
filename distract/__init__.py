"""Measure how easily an LLM judge is distracted by style."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
else:
    # Looked up when asked for: it reads a file, and every start of pytest imports this package (the plugin).
    def __getattr__(name: str) -> str:
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version("distract")


# In a checkout the plug-in folders lie beside this one and not inside it. Python finds this folder first where it is
# started in the checkout (`python -m pytest`), even if an installed copy exists.
_checkout = Path(__file__).resolve().parents[1]
if (_checkout / "pyproject.toml").is_file():
    __path__.append(str(_checkout))
