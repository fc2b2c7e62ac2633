"""Prints the table of what is measured: python -m tests.reality.show [CASE]"""

from __future__ import annotations

import sys

from tests.reality.measure import read_measured
from tests.reality.table import lines, markdown

if __name__ == "__main__":
    measured = read_measured()
    wanted = {name: found for name, found in measured.items() if name in sys.argv[1:] or not sys.argv[1:]}
    print("\n".join(markdown(list(lines(wanted)))))
