"""`python -m groupstorm` is the `groupstorm` command."""

from __future__ import annotations

from groupstorm.cli.app import main

if __name__ == "__main__":
    main()
