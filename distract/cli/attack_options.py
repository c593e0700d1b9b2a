"""The options that ``attack`` and ``gate`` share: what is judged and how."""

from __future__ import annotations

import click

from distract.cli.shared import best_of_option, data_options, generator_options, group_options, manner_options

audit_options = group_options(
    data_options,
    click.option("--protocol", "protocols", multiple=True, help="Way of asking; repeatable. Default: the basic ones."),
    click.option("--reference-model", help="Model, named like a judge, that protocols with a reference ask for it."),
    manner_options,
    click.option(
        "--generator", help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded if there."
    ),
    generator_options,
    best_of_option,
    click.option("--verifier", help="Model, named like a judge, that is asked whether a rewrite says the same."),
)
