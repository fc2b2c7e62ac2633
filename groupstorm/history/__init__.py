"""The one fold over the rows of a group, which hands on typed facts: owners, gaps, rounds and members.

Figures, explain, watch and the views read these facts. `docs/development.md` names the file of each rule.
"""
