"""Why a group rebalanced: from a trace to named patterns, with the rows behind each and what it cost.

`explanation.explain` reads a trace once. `recorder` keeps of its rows what `history` describes: rebalances,
members that came and went, incidents. Each module of `patterns` holds rules over that history;
`patterns.PATTERNS` lists them. Un-owned time is that of `groupstorm.history.ownership`.
"""
