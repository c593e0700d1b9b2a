"""The edits from one sequence of words to another, in about linear time however long they are."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

MOST_PAIRS = 200_000
"""Maximum pairs of equal words in two texts for an exact search of their difference."""

MOST_CELLS = 1_000_000
"""Maximum product of the lengths of two sequences of words that are searched as a whole."""

Opcode = tuple[str, int, int, int, int]


def opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode]:
    """Return the edits from one sequence of words to another, in the form of ``difflib``.

    Long sequences are aligned first at words that both have once, because ``difflib`` takes quadratic time where every
    other word differs. If words repeat so often that the search would take seconds, everything between the common start
    and the common end is one replacement.
    """
    if len(old) * len(new) <= MOST_CELLS:
        return _compare(old, new)
    codes, a, c = list[Opcode](), 0, 0
    for b, d in [*_anchors(old, new), (len(old), len(new))]:
        shifted = [(what, a + i, a + j, c + k, c + m) for what, i, j, k, m in _compare(old[a:b], new[c:d])]
        if shifted and codes and shifted[0][0] == codes[-1][0] == "equal":
            _, i, _, k, _ = codes.pop()
            shifted[0] = ("equal", i, shifted[0][2], k, shifted[0][4])
        codes += shifted
        a, c = b, d
    return codes


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of words that both sequences have once: as many as are in the same order."""
    once, others = Counter(old), Counter(new)
    places = {word: index for index, word in enumerate(new) if others[word] == 1}
    pairs = [(i, places[word]) for i, word in enumerate(old) if once[word] == 1 and word in places]
    # The longest increasing run of places; ``before`` links each pair to the last of the best run before it.
    ends, last, before = list[int](), list[int](), list[int]()
    for index, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        before.append(last[at - 1] if at else -1)
        ends[at : at + 1], last[at : at + 1] = [place], [index]
    chain, index = list[tuple[int, int]](), last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _compare(old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode]:
    counts = Counter(new)
    pairs = sum(count * counts[word] for word, count in Counter(old).items())
    if pairs <= MOST_PAIRS and len(old) * len(new) <= MOST_CELLS:
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    most = min(len(old), len(new))
    start = next((i for i in range(most) if old[i] != new[i]), most)
    end = next((i for i in range(most - start) if old[-1 - i] != new[-1 - i]), most - start)
    a, b = len(old) - end, len(new) - end
    whole = [("equal", 0, start, 0, start), ("replace", start, a, start, b), ("equal", a, len(old), b, len(new))]
    return [code for code in whole if code[1] < code[2] or code[3] < code[4]]
