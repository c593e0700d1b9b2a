"""Measure how easily an LLM judge is distracted by style."""

from importlib.metadata import version
from pathlib import Path

__version__ = version("distract")

# In a checkout the plug-in folders lie beside this one and not inside it. Python finds this folder first where it is
# started in the checkout (`python -m pytest`), even if an installed copy exists.
_checkout = Path(__file__).resolve().parents[1]
if (_checkout / "pyproject.toml").is_file():
    __path__.append(str(_checkout))
