"""Measure how easily an LLM judge is distracted by style.

``attack`` and ``gate`` do what the commands do. The records are what goes through them; ``Attack``, ``Protocol`` and
``RatingSystem`` are what plug-ins define, and the modules offered here are the tools that plug-ins and tests use. All
else is internal. Names load when they are used.
"""

import os.path

TYPE_CHECKING = False  # to type checkers it is true; ``typing`` and ``pathlib`` take longer to load than all of this
if TYPE_CHECKING:
    from distract.cli.api import Run, load
    from distract.cli.signatures import attack, gate
    from distract.core import prompts
    from distract.core.attack import Attack, WritingTask
    from distract.core.errors import BackendError, DataError, DistractError, PluginError, UnknownName, UsageError
    from distract.core.plan import Plan
    from distract.core.plugin import Calls, Comparison, Protocol
    from distract.core.records import Case, Constraint, Judgment, Outcome, Request, Response, Slots
    from distract.data import constraints
    from distract.judging import instructions, orders, parsers, verdicts
    from distract.judging.functions.declaration import judge, sent
    from distract.judging.judge import Judge
    from distract.models.options import setting
    from distract.models.provider import Provider
    from distract.rewriting import fidelity
    from distract.rewriting.fidelity import facts
    from distract.stats.ratings.matches import Draws, Matches
    from distract.stats.ratings.system import Ratings, RatingSystem
    from distract.studies.gate.verdict import Verdict
    from distract.testing import invariants, strategies

    __version__: str

__all__ = [
    "Attack",
    "BackendError",
    "Calls",
    "Case",
    "Comparison",
    "Constraint",
    "DataError",
    "DistractError",
    "Draws",
    "Judge",
    "Judgment",
    "Matches",
    "Outcome",
    "Plan",
    "PluginError",
    "Protocol",
    "Provider",
    "RatingSystem",
    "Ratings",
    "Request",
    "Response",
    "Run",
    "Slots",
    "UnknownName",
    "UsageError",
    "Verdict",
    "WritingTask",
    "attack",
    "constraints",
    "facts",
    "fidelity",
    "gate",
    "instructions",
    "invariants",
    "judge",
    "load",
    "orders",
    "parsers",
    "prompts",
    "sent",
    "setting",
    "strategies",
    "verdicts",
]

_MODULES = {
    "Attack": "distract.core.attack",
    "BackendError": "distract.core.errors",
    "Calls": "distract.core.plugin",
    "Case": "distract.core.records",
    "Comparison": "distract.core.plugin",
    "Constraint": "distract.core.records",
    "DataError": "distract.core.errors",
    "DistractError": "distract.core.errors",
    "Draws": "distract.stats.ratings.matches",
    "Judge": "distract.judging.judge",
    "Judgment": "distract.core.records",
    "Matches": "distract.stats.ratings.matches",
    "Outcome": "distract.core.records",
    "Plan": "distract.core.plan",
    "PluginError": "distract.core.errors",
    "Protocol": "distract.core.plugin",
    "Provider": "distract.models.provider",
    "RatingSystem": "distract.stats.ratings.system",
    "Ratings": "distract.stats.ratings.system",
    "Request": "distract.core.records",
    "Response": "distract.core.records",
    "Run": "distract.cli.api",
    "Slots": "distract.core.records",
    "UnknownName": "distract.core.errors",
    "UsageError": "distract.core.errors",
    "Verdict": "distract.studies.gate.verdict",
    "WritingTask": "distract.core.attack",
    "attack": "distract.cli.api",
    "constraints": "distract.data.constraints",
    "facts": "distract.rewriting.fidelity.facts",
    "fidelity": "distract.rewriting.fidelity",
    "gate": "distract.cli.api",
    "instructions": "distract.judging.instructions",
    "invariants": "distract.testing.invariants",
    "judge": "distract.judging.functions.declaration",
    "load": "distract.cli.api",
    "orders": "distract.judging.orders",
    "parsers": "distract.judging.parsers",
    "prompts": "distract.core.prompts",
    "sent": "distract.judging.functions.declaration",
    "setting": "distract.models.options",
    "strategies": "distract.testing.strategies",
    "verdicts": "distract.judging.verdicts",
}
"""Where each name is defined; a module is offered under its own name."""

PACKAGES = {
    "distract.attacks": "distract.attacks",
    "distract.judges": "distract.judges",
    "distract.leaderboards": "distract.leaderboards",
    "distract.providers": "distract.judging.providers",
    "distract.studies": "distract.studies",
}
"""The package that ships the plug-ins of each group, and that of the studies: the engine itself names none of them."""

READERS = {"distract.judges": "distract.judging.judge_file:read_protocol"}
"""What reads a plug-in of a group from a file that is no Python."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Look a name up when it is asked for: every start of pytest imports this package (the plugin)."""
        if name == "__version__":
            from importlib.metadata import version

            return version("distract")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(_MODULES[name])
        value = module if module.__name__.endswith(f".{name}") else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


# In a checkout the plug-in folders lie beside this one and not inside it. Python finds this folder first where it is
# started in the checkout (`python -m pytest`), even if an installed copy exists.
_checkout = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
if os.path.isfile(os.path.join(_checkout, "pyproject.toml")):  # noqa: PTH113, PTH118
    __path__.append(_checkout)
