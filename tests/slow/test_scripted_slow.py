"""Test that planted judges follow their bias under every protocol."""

from __future__ import annotations

import pytest
from test_scripted import LONG, SHORT, prefers

from distract.core.records import Response
from distract.core.registry import protocols


# test_protocols covers protocols that show more than two responses.
@pytest.mark.parametrize("protocol", [name for name, p in protocols().items() if p.shows in (2, None)])
class TestEveryProtocol:
    def test_strength_is_the_share_of_biased_cases(self, protocol: str) -> None:
        alike = Response("z", SHORT.turns), Response("z", LONG.turns)
        biased = sum(prefers("longer=0.3", protocol, *alike, f"c{i}") == "b" for i in range(160))
        assert 0.22 < biased / 160 < 0.38
        assert prefers("longer=0", protocol, *alike) == "tie"
