"""The command line as a process: ``distract`` and ``python -m distract``."""

from __future__ import annotations

import sys

from distract.core.errors import describe_import_error


def main() -> None:
    """Run the command line; where it cannot even be imported, end with 4: Python's own 1 is a gate's verdict."""
    try:
        from distract.cli import main as cli
    except Exception as error:
        sys.stderr.write(f"distract: {describe_import_error(error)}\n")
        raise SystemExit(4) from None
    cli.main()


if __name__ == "__main__":
    main()
