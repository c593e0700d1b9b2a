"""Published outputs of judges, read from files and measured like judges that distract runs.

Each format has one module, which states its swap convention; distract's run folders are one more format. A comparison
becomes a row of the design ``people`` with the published winner and, if the judge's text is stored, the verdict of
distract's parser. A missing verdict remains missing: it is never dropped or counted as a tie. No model is asked.
"""

from __future__ import annotations

from distract.judging.published.discovery import load
from distract.judging.published.labels import attach_labels
from distract.judging.published.published_runs import PublishedRun

__all__ = ["PublishedRun", "attach_labels", "load"]
