"""Published outputs of judges as judges: what they said is read from files and judged by the same figures as ours.

One module a format, each of which states its swap convention; our own run folders are one more. A comparison becomes a
row of the design ``people``, heard by the published winner and, where the judge's text is stored, by our parser. What
is no verdict there is none here: it is never dropped, and never a tie. Nothing here asks a model.
"""

from __future__ import annotations

from distract.judging.published.discovery import load
from distract.judging.published.labels import attach_labels
from distract.judging.published.published_runs import PublishedRun

__all__ = ["PublishedRun", "attach_labels", "load"]
