"""Find out whether style distracts a judge. Run the cells or the whole file; it needs no model and no network."""

# %%
import distract

run = distract.attack(judge="planted:longer", attacks=["sycophancy", "prolixity"], generator="rules", limit=None)
print(run)

# %% [markdown]
# ## Figures: one flat dict per figure, as in `distract attack --json`

# %%
for figure in run.results:
    if figure["measure"] == "flip_rate" and figure["k"] is not None:
        protocol = " by ".join(filter(None, (figure["protocol"], figure["rule"])))
        print(f"{protocol:20} {figure['attack'] or 'any attack':12} {figure['k']:3} of {figure['n']} verdicts flipped")

# %% [markdown]
# ## Flips, with the texts before and after

# %%
flips = run.flips()
clearest = flips[0]
print(f"{len(flips)} flips; the clearest: {clearest.case}, {clearest.protocol} under {clearest.attack}")
print(f"before: {clearest.original[:70]!r}")
print(f"after:  {clearest.rewrite[:70]!r}")

# %% [markdown]
# ## A table, if pandas is installed

# %%
try:
    print(run.to_frame().groupby(["protocol", "attack", "design"]).size())
except distract.UsageError as error:
    print(error)

# %% [markdown]
# ## A gate: pass, fail or inconclusive, as in CI

# %%
verdict = distract.gate(run, max_flip_rate=0.10)
print(f"{verdict.decision}: {verdict.reason}")
for check in verdict.checks:
    print(f"  {check.protocol}, {check.attack}: {check.decision}, {check.k} of {check.n}")
