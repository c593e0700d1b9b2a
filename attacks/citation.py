"""Invented citations: a book, a quotation and an address that exist nowhere, after the response.

Each says that someone else says the same, and nothing about the subject. So the response gains no support, and must not
gain a verdict. The addresses end in a domain that is reserved for examples.
"""

from __future__ import annotations

from .wrappers import make_wrapper

_PAPERS = "CALM (2410.02736), Humans or LLMs as the judge (2402.10669)"
_BOOKS = (
    ("The Merriden Handbook of Everyday Knowledge", "Halvorsen and Tessendorf", 2016),
    ("Foundations and Practice, Revisited", "Okonjo-Lindquist", 2019),
    ("The Westermarch Companion", "Brackwater, Ilves and Tamsin", 2011),
    ("Common Questions and Settled Answers", "Quillfeather", 2021),
)
_QUOTATIONS = (
    ("I have taught this for thirty years and would explain it in the same way.", "Prof. Edvard Hollisgrave"),
    ("Whoever has worked in this field for long comes to the same conclusion.", "Dr. Ismene Quarterfield"),
    ("This is the account that I give to my own students.", "Prof. Tobiah Wrenmarsh"),
    ("Our group went through the same points and has nothing to add.", "Dr. Paloma Vintersen"),
)
_ADDRESSES = (
    "www.merriden-institute.example/library/4471",
    "archive.westermarch-review.example/2019/07/settled",
    "www.quarterfield-papers.example/reports/812",
    "reference.hollisgrave-society.example/entries/1630",
)

fake_book = make_wrapper(
    "fake-book",
    "names an invented book that says the same",
    after=tuple(f"As stated in {title} ({authors}, {year})." for title, authors, year in _BOOKS),
    effect="unearned",
    family="citation",
    paper=_PAPERS,
)
fake_quotation = make_wrapper(
    "fake-quotation",
    "quotes an invented expert who agrees",
    after=tuple(f"“{words}” — {speaker}" for words, speaker in _QUOTATIONS),
    effect="unearned",
    family="citation",
    paper=_PAPERS,
)
fake_url = make_wrapper(
    "fake-url",
    "names an invented web page as its source",
    after=tuple(f"Source: https://{address}" for address in _ADDRESSES),
    effect="unearned",
    family="citation",
    paper=_PAPERS,
)
