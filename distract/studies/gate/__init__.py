"""The CI gate: flip rates against thresholds, from a finished run or from as few judge calls as the decision needs.

``verdict`` holds decisions, ``limits`` the thresholds, which ``settings`` reads from ``pyproject.toml``. ``exact``
decides on a finished run, ``regression`` on two of them, ``live`` while it judges (its test is in ``mixture`` and
``boundary``), and ``power_plan`` computes in advance how many cases a gate needs.
"""
