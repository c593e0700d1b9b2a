"""Judge names to backends: ``smollm2-135m``, ``planted:BIAS``, ``transformers:ORG/MODEL``.

Opening a judge is cheap: weights load when a reply is wanted that is not stored. It knows no protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from distract.backends import Backend, scripted
from distract.errors import UnknownName, UsageError
from distract.records import Role

DEFAULT = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class Options:
    """How a local model is loaded; each has the meaning that transformers gives it."""

    dtype: str = "auto"
    device_map: str | None = None
    quantization: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    batch_tokens: int = 2048


def known() -> Mapping[str, str]:
    """Every form of a judge's name with one line about it."""
    planted = {f"planted:{name}": f"planted: {line}" for name, (line, _) in scripted.PLANTED.items()}
    return {
        "smollm2-135m": "embedded: SmolLM2-135M-Instruct, a real model that runs on a CPU",
        "transformers:ORG/MODEL": "any chat model of the hub (@REVISION), or a local folder, through transformers",
        **planted,
    }


def open_models(
    names: Mapping[Role, str | None], options: Options | None = None, no_models: Collection[str] = ()
) -> dict[Role, Backend]:
    """The backends of a run; a model that has several roles is loaded once.

    Args:
        names: of the judge and of the others that are wanted, as listed by ``known``.
        options: how local models are loaded; the revision is the judge's.
        no_models: names of generators that are no model; nothing is opened for them.

    Raises:
        UnknownName: no such judge.
        UsageError: an option does not fit, or a planted judge is to write.
    """
    options = options or Options()
    written = {"generator": no_models}
    named = {role: name for role, name in names.items() if name is not None and name not in written.get(role, ())}
    local = any(_is_local(name) for name in named.values())
    opened: dict[Role, Backend] = {}
    for role, name in named.items():
        if role != "judge" and name.startswith("planted:"):
            raise UsageError(f"{name} reads structure and not text: it cannot be a {role}; name a model")
        same = next((opened[other] for other in opened if named[other] == name), None)
        own = options if role == "judge" else replace(options, revision=None)
        if not _is_local(name) and local:
            own = Options(revision=own.revision)  # the rest is about the models that are loaded
        if role != "judge" and name == DEFAULT:
            own = replace(own, trust_remote_code=False)
        try:
            opened[role] = same or open_judge(name, own)
        except UnknownName as error:
            if role == "judge":
                raise
            models = [form for form in known() if not form.startswith("planted:")]
            raise UnknownName(role, name, [*models, *(no_models if role == "generator" else ())]) from error
    return opened


def _is_local(name: str) -> bool:
    return name == DEFAULT or name.startswith("transformers:")


def open_judge(name: str, options: Options | None = None) -> Backend:
    """The backend of a judge.

    Args:
        name: as listed by ``known``.
        options: how to load a local model; only those of a local model may be set.

    Raises:
        UnknownName: no such judge.
        UsageError: an option does not fit the judge, or an extra is not installed.
    """
    options = options or Options()
    kind, colon, rest = name.partition(":")
    if kind == "planted" and colon:
        if options != Options():
            raise UsageError(f"{name} is planted and loads no model; leave out the options for one")
        return scripted.planted(rest)
    if name == DEFAULT:
        from distract.backends.transformers import embedded_judge

        if options.revision or options.trust_remote_code:
            raise UsageError(f"{name} is one fixed file without code; leave out --revision and --trust-remote-code")
        return embedded_judge(
            # Named here, since finding out what "auto" means would import torch even where all replies are stored.
            dtype="float32" if options.dtype == "auto" else options.dtype,
            device_map=options.device_map,
            quantization=options.quantization,
            batch_tokens=options.batch_tokens,
        )
    if kind == "transformers" and rest:
        if rest.startswith((".", "/", "~")) and not Path(rest).is_dir():
            raise UsageError(f"{name}: no such folder; name a folder with a model in it, or ORG/MODEL of the hub")
        from distract.backends.transformers import Transformers

        model, at, pinned = rest.rpartition("@")
        if at and model and not Path(rest).exists():
            rest, options = model, replace(options, revision=options.revision or pinned)
        return Transformers(
            rest,
            revision=options.revision,
            dtype=options.dtype,
            device_map=options.device_map,
            quantization=options.quantization,
            trust_remote_code=options.trust_remote_code,
            batch_tokens=options.batch_tokens,
        )
    raise UnknownName("judge", name, known(), "vLLM and OpenAI-compatible servers are not supported yet")
