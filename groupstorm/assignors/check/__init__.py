"""Checks an assignor against its promises, and finds the smallest history in which it breaks one.

* `history`: groups that go through rounds of rebalancing, and random ones;
* `properties`: the questions asked of every round and of every change, and the best balance and the fewest
  moves of a small group, by brute force;
* `checking`: plays histories, collects broken properties, makes a failing history small, and measures the CPU
  time of answers;
* `rendering`: histories and reports as JSON and as lines of text.

No module here reads a clock or starts a process. The caller brings the measurement of CPU time, the limit
for an assignor that does not answer, and the second process with another hash seed.
"""

from __future__ import annotations
