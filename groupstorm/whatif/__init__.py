"""The cost of the same hours under other settings: a trace becomes a scenario that can be changed.

`reading` takes what happened from a trace, `lives` and `waves` say which process started and stopped when,
`inference` says which settings the run had, `drafting` makes a scenario file of it, `agreement` replays that
file and compares the replays with the trace, and `advising` searches settings. `measuring` gives the settings
alone, for rollouts that are not those of the trace.
"""
