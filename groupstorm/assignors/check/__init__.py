"""The property report: does an assignor keep what it promises, and what is the smallest history where not?

* `history`: groups that go through rounds of rebalancing; `drawing`: random ones of them;
* `properties`: what is asked of every round and of every change;
* `optimum`: the best balance and the fewest moves, by trying everything;
* `checking`: plays histories and collects what broke; `shrinking`: makes a failing history small;
* `telling`: histories and reports as JSON and as lines of text; `speed`: what an answer costs.

Nothing here looks at a clock or starts a process: whoever asks brings what measures CPU time, what
breaks off an assignor that does not answer, and what answers under another hash seed.
"""

from __future__ import annotations
