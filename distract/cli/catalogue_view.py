"""The catalogue as lines for people. It knows no machine: what fits here is said when a judge is opened."""

from __future__ import annotations

from collections.abc import Iterable

from distract.models.catalogue import CatalogueEntry


def model_lines(models: Iterable[CatalogueEntry]) -> dict[str, str]:
    """One line about each model, by name: id, billions of parameters, context in tokens, family, licence, notes."""
    models = list(models)
    width = max((len(model.model) for model in models), default=0)
    return {
        model.name: f"{model.model:<{width}}  {_size(model):>12} {_context(model):>6}  {_details(model)}"
        for model in models
    }


def _size(model: CatalogueEntry) -> str:
    if model.parameters is None:
        return "server" if model.engine == "openai" else ""
    active = f" ({model.active:g}B)" if model.active else ""
    return f"{model.parameters:g}B{active}"


def _context(model: CatalogueEntry) -> str:
    if model.context is None:
        return ""
    return f"{model.context // 1024}k" if model.context >= 1024 else str(model.context)


def _details(model: CatalogueEntry) -> str:
    prices = ""
    if model.price_in is not None or model.price_out is not None:
        when = f" in {model.prices}" if model.prices else ""
        prices = f"${model.price_in or 0:g} / ${model.price_out or 0:g} a million tokens{when}"
    return "; ".join(part for part in (model.family, model.licence, prices, model.notes) if part)
