"""The gate: flip rates against thresholds, on a finished run or on as few calls as the decision needs.

``records`` says what a decision is, ``limits`` what is allowed and ``settings`` reads that from ``pyproject.toml``;
``exact`` decides a finished run, ``live`` judges until the evidence suffices (``mixture`` and ``boundary`` hold its
test), ``regression`` compares two runs and ``power_plan`` says beforehand how many cases are needed.
"""
