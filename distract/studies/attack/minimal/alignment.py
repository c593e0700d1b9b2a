"""Find the words that two texts have in common."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 1 << 29
"""Maximum number of pairs of words, without common start and end, for which to find the longest common sequence."""

Spans = Sequence[tuple[int, int]]
"""The places of the words of a text, between an empty word at either end."""

WordMatches = Sequence[tuple[int, int]]
"""Words that two texts have in common, in order, as pairs of word numbers."""

_SENTENCE, _CLAUSE = ".!?…。！？", ",;:—，、；："  # characters that end one


def match_words(old: Sequence[str], new: Sequence[str]) -> WordMatches:
    """Find the longest sequence of words that both texts have in common.

    Bit-parallel (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): one addition of long integers per old
    word. All sums are kept, one bit per pair of words; beyond ``MOST`` pairs only the common start and end count.
    """
    shorter = min(len(old), len(new))
    head = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    tail = next((k for k in range(shorter - head) if old[-1 - k] != new[-1 - k]), shorter - head)
    middle = new[head : len(new) - tail]
    if len(middle) * (len(old) - head - tail) > MOST:
        middle = []
    places: dict[str, int] = {}
    for column, word in enumerate(middle):
        places[word] = places.get(word, 0) | 1 << column
    # A bit is 0 if the longest sequence grows with that column.
    row = every = (1 << len(middle)) - 1
    rows = [row]
    for word in old[head : len(old) - tail]:
        hit = row & places.get(word, 0)
        row = (row + hit | row - hit) & every
        rows.append(row)
    matches = []
    at, column = len(rows) - 1, len(middle)
    while at and column:
        if rows[at] >> column - 1 & 1:
            column -= 1
            continue
        at -= 1
        if rows[at] >> column - 1 & 1:
            column -= 1
            matches.append((head + at, head + column))
    ends = ((len(old) - k, len(new) - k) for k in range(tail, 0, -1))
    return [*((k, k) for k in range(head)), *reversed(matches), *ends]


def settle_edges(texts: tuple[str, str], spans: tuple[Spans, Spans], same: WordMatches) -> WordMatches:
    """Move insertions and deletions so that they begin and end with a sentence or line, if possible.

    A sentence added at the end of a text ends in a full stop, and so does the one before it: which of the two is new is
    open. Here it is the last.
    """
    words = [[text[start:end] for start, end in places] for text, places in zip(texts, spans, strict=True)]
    matches = list(same)
    for at in range(len(matches) - 1):
        (i, j), (k, m) = matches[at : at + 2]
        if (k == i + 1) == (m == j + 1):
            continue
        # Find the text with the extra words, and their place.
        side = int(k == i + 1)
        start, end = matches[at][side] + 1, matches[at + 1][side]
        lowest = -_count_moves(words[side], matches, at, end - 1, start - 1, -1)
        highest = _count_moves(words[side], matches, at + 1, start, end, 1)
        best = _best_move(texts[side], spans[side], (start, end), range(lowest, highest + 1))
        size = end - start if best < 0 else start - end
        for moved in range(at + 1 + min(best, 0), at + 1 + max(best, 0)):
            old, new = matches[moved]
            matches[moved] = (old, new + size) if side else (old + size, new)
    return matches


def _best_move(text: str, spans: Spans, block: tuple[int, int], moves: Sequence[int]) -> int:
    return max(moves, key=lambda move: (sum(_score_edge(text, spans, word + move) for word in block), -abs(move)))


def _count_moves(words: Sequence[str], same: WordMatches, match: int, leaves: int, enters: int, step: int) -> int:
    """Count by how many words a block can move one way without touching another change.

    It can move if the word it leaves equals the one it takes in.
    """
    moved = 0
    while 0 < match < len(same) - 1 and words[leaves] == words[enters]:
        (i, j), (k, m) = same[match], same[match + step]
        if (k, m) != (i + step, j + step):
            break
        moved, match, leaves, enters = moved + 1, match + step, leaves + step, enters + step
    return moved


def _score_edge(text: str, spans: Spans, word: int) -> int:
    """Score a place before a word as the edge of a change: 4 for a line, 3 a sentence, 2 a clause, 1 a word."""
    before, last = gap(text, spans, word), text[max(0, spans[word - 1][1] - 1)]
    if word in (1, len(spans) - 1) or "\n" in before:
        return 4
    return 3 if last in _SENTENCE else 2 if last in _CLAUSE else int(before != "")


def gap(text: str, spans: Spans, word: int) -> str:
    """Return the text before a word."""
    return text[spans[word - 1][1] : spans[word][0]]
