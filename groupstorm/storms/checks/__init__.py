"""The invariants of every run: checks that read the rows of the trace, and the world at its end.

They share no code with the coordinator, the members and the world that they check.

* `verdicts`: the names of the invariants, and the first violation of each.
* `states`: the group's changes of state, by a table of their own.
* `ownership`: who owns what, by the members' rows and by the assignments of the coordinator.
* `requests`: JoinGroup and SyncGroup requests that the coordinator parked.
* `membership`: who is in the group, who lives, who is silent.
* `fenced_commits`: which generation or epoch a commit may carry.
* `committed_positions`: where owners begin, and what the group has committed.
* `owned_time`: how long partitions had no owner, beside the figures.
"""
