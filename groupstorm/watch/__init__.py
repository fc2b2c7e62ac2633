"""`groupstorm watch`: figures of the last minutes of a trace that is still being written.

Spark Structured Streaming finds the new files, or the new records of a topic (`stream`). `checkpoint` keeps
their rows over a restart. `rolling` folds them with the rules of `groupstorm.figures` and
`groupstorm.explain`, for any span up to the longest that was asked for, and carries the state of the groups
forward when rows are older than that.
"""
