"""Making data: a better and a worse answer from a reference, and questions with format constraints and their answers.

Both makers are plans that ask a generator model, check by rules what comes back, ask again with what was wrong, and
end in a case or in the reasons why there is none. They read and write no file, and make no call themselves.
"""

from __future__ import annotations

from distract.studies.make.attempts import MakeResult, yield_document
from distract.studies.make.pairs import make_pair
from distract.studies.make.tweakset import make_tweak

__all__ = ["MakeResult", "make_pair", "make_tweak", "yield_document"]
