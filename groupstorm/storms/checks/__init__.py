"""The invariants of every run: checks that read the rows of the trace, and the world at its end.

They share no code with the coordinator, the members and the world that they check.

* `verdicts`: the names of the invariants, and the first violation of each.
* `states`: the group's changes of state, by a table of their own, and consumer groups.
* `ownership`: the owners of partitions, by the members' rows and by the assignments of the coordinator, and
  partitions that Kafka leaves without one.
* `figure_checks`: the time in which partitions had none, and records processed again, beside the figures.
* `membership`: the members of the group, the living and the silent, and requests that the coordinator parked.
* `commits`: the generation or epoch of a commit, the positions where owners begin, the members that another
  coordinator would load.
* `settling`: groups that do not come to rest.
"""
