"""Words for the outcome of a comparison and for the grade of one response, from which every reader of them derives.

Words are in lower case. A reader that knows more of its input (a letter for a tie, names of models) adds to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from distract.core.records import Outcome

FIRST = ("a", "first", "left", "1st", "one", "erste", "première", "premier", "primera", "prima", "primeira",
         "первый")  # fmt: skip
SECOND = ("b", "second", "right", "2nd", "two", "zweite", "deuxième", "seconde", "segunda", "seconda", "второй")
ARENA_TIES = ("tie", "tie (bothbad)", "bothbad", "both_bad", "tie (inconsistent)")
"""Ties of published votes."""
TIES = (*ARENA_TIES, "draw", "equal", "tied", "ties", "same", "both", "neither",
        "unentschieden", "gleichstand", "égalité", "empate", "pareggio", "ничья", "remis",
        "oavgjort", "lika", "uafgjort", "pari", "ex aequo", "gelijkspel", "beraberlik", "hòa", "barabar", "बराबर",
        "تعادل", "平局", "平手", "引き分け", "무승부")  # fmt: skip
OUTCOMES: Mapping[str, Outcome] = MappingProxyType(
    {**dict.fromkeys(FIRST, "a"), **dict.fromkeys(SECOND, "b"), **dict.fromkeys(TIES, "tie")}
)
NUMBERS: Mapping[str, Outcome] = MappingProxyType({"1": "a", "2": "b"})
"""Numbers of two responses, where they cannot be anything else."""

PASSES = ("pass", "passed", "true", "yes", "y", "1", "good", "correct", "right", "accept", "accepted",
          "acceptable", "ok", "positive", "thumbs_up", "up", "c", "ja", "oui", "sí", "sì", "sim", "да", "tak",
          "evet", "có", "हाँ", "نعم", "是", "はい", "예", "네", "bestanden", "richtig", "réussi", "vrai", "correcto",
          "aprobado", "corretto", "aprovado", "верно", "зачёт", "zaliczone", "godkänd", "geçti", "đạt", "合格", "通过",
          "正确", "正解", "합격", "통과")  # fmt: skip
FAILS = ("fail", "failed", "false", "no", "n", "0", "bad", "incorrect", "wrong", "reject", "rejected",
         "unacceptable", "not ok", "negative", "thumbs_down", "down", "i", "nein", "non", "não", "нет", "nie",
         "nej", "hayır", "không", "नहीं", "لا", "否", "いいえ", "아니요", "nicht bestanden", "falsch", "échoué", "faux",
         "incorrecto", "reprobado", "scorretto", "reprovado", "неверно", "незачёт", "niezaliczone", "underkänd",
         "kaldı", "không đạt", "不合格", "不通过", "错误", "不正解", "불합격")  # fmt: skip
GRADES: Mapping[str, float] = MappingProxyType({**dict.fromkeys(PASSES, 1.0), "p": 0.5, **dict.fromkeys(FAILS, 0.0)})
"""Grades of one response; C, P and I stand for correct, partly correct and incorrect."""

NO_VERDICTS = frozenset(("", "nan", "null", "none", "<na>", "n/a", "error", "invalid", "no verdict"))
