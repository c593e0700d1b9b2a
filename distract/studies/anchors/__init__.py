"""Anchors: comparisons with a judge's verdicts, frozen in a file, that tell later whether the judge has changed."""
