"""The property report: does an assignor keep what it promises, and what is the smallest history where not?

* `history`: groups that go through rounds of rebalancing; `drawing`: random ones of them;
* `properties`: what is asked of every round and of every change;
* `optimum`: the best balance and the fewest moves, by trying everything;
* `checking`: plays histories and collects what broke; `shrinking`: makes a failing history small;
* `telling`: a history and a report as text and JSON; `speed`: how long an assignor takes.
"""

from __future__ import annotations
