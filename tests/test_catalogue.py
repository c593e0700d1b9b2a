"""Opening the models of a run: one load for one name, options for whom they fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from distract.backends.catalogue import Options, open_judge, open_models
from distract.backends.transformers import Transformers
from distract.errors import UnknownName, UsageError

EMBEDDED = "smollm2-135m"


def test_a_model_with_several_roles_is_opened_once() -> None:
    models = open_models({"judge": EMBEDDED, "generator": EMBEDDED, "verifier": EMBEDDED})
    assert models["judge"] is models["generator"] is models["verifier"]


def test_what_is_no_model_and_what_is_not_wanted_is_not_opened() -> None:
    models = open_models({"judge": "planted:fair", "generator": "rules", "verifier": None}, no_models=("rules",))
    assert list(models) == ["judge"]


def test_options_are_for_local_models_and_the_revision_is_the_judges(tmp_path: Path) -> None:
    options = Options(dtype="float32", revision="abc", trust_remote_code=True)
    names = {"judge": "transformers:org/judge", "generator": "transformers:org/writer@v2", "verifier": EMBEDDED}
    found = open_models(names, options)  # type: ignore[arg-type]
    judge, writer, verifier = (found[role] for role in ("judge", "generator", "verifier"))
    assert isinstance(judge, Transformers)
    assert isinstance(writer, Transformers)
    assert isinstance(verifier, Transformers)
    assert (judge.model, judge.revision, judge.trust_remote_code) == ("org/judge", "abc", True)
    assert (writer.model, writer.revision, writer.dtype) == ("org/writer", "v2", "float32")
    assert verifier.trust_remote_code is False
    # A planted judge takes no options, but the generator beside it does.
    open_models({"judge": "planted:fair", "generator": EMBEDDED}, Options(dtype="float32"))
    with pytest.raises(UsageError, match="loads no model"):
        open_models({"judge": "planted:fair", "generator": EMBEDDED}, Options(revision="abc"))
    folder = tmp_path / "a@b"
    folder.mkdir()
    local = open_judge(f"transformers:{folder}")
    assert isinstance(local, Transformers)
    assert (local.model, local.revision) == (str(folder), None)


@pytest.mark.parametrize("role", ["generator", "verifier"])
def test_an_unknown_name_is_said_for_its_role(role: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown {role} 'smolm2-135m'; did you mean 'smollm2-135m'") as error:
        open_models({"judge": EMBEDDED, role: "smolm2-135m"}, no_models=("rules",))  # type: ignore[dict-item]
    assert ("rules" in str(error.value)) == (role == "generator")
    assert "planted" not in str(error.value)
    with pytest.raises(UsageError, match="reads structure and not text"):
        open_models({"judge": EMBEDDED, role: "planted:bold"})  # type: ignore[dict-item]
