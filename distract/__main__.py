"""The command line as a process: ``distract`` and ``python -m distract``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; where it cannot even be imported, end with 4: Python's own 1 is a gate's verdict."""
    try:
        from distract import cli
    except Exception as error:  # a library is missing, or too old
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        needed = "install what distract requires: pip install --upgrade distract"
        sys.stderr.write(f"distract: cannot start ({ascii(reason)[1:-1]}); {needed}\n")
        raise SystemExit(4) from None
    cli.main()


if __name__ == "__main__":
    main()
