"""What the same hours would have cost under other settings: a trace becomes a scenario that can be changed.

`reading` takes what happened from a trace, `lives` and `waves` say which process started and stopped when,
`inference` says which settings the run had, `drafting` and `writing` make a scenario file of it, `agreement`
holds a replay of that file against the trace, and `advising` searches settings.
"""
