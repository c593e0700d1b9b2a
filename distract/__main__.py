"""``python -m distract`` is the command line."""

from distract.cli import main

if __name__ == "__main__":
    main()
