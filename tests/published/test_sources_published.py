"""Test how a spec of matches is resolved and how formats are recognised."""

from __future__ import annotations

from pathlib import Path

import pytest

from distract.core.errors import DataError
from distract.studies.leaderboard.sources import read

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data sets")
def test_real_labelled_sets_load_completely() -> None:
    (source,) = read(str(SHARED / "pandalm" / "testset-v1.json"))
    assert (source.format, source.matches.models) == ("pandalm", ("response1", "response2"))
    assert len(source.matches) + sum(source.left_out.values()) == 999
    with pytest.raises(DataError, match="nothing can be rated: not two responses of different authors"):
        read(str(SHARED / "mt_bench"))
