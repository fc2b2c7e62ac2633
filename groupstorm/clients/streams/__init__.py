"""One thread of a Kafka Streams application as a member of its group, sans-IO.

* `topology`: the tasks there are, by number, by name and by input partition;
* `directory`: what a host keeps of its tasks' state, over restarts too (StateDirectory);
* `changelogs`: one thread's reading of changelogs: restoration, standbys that follow (DefaultStateUpdater);
* `tasks`: what a thread has of which task, from assignment to assignment (TaskManager);
* `assignor`: its subscriptions and assignments, and the assignor where it leads (StreamsPartitionAssignor);
* `events`: what it tells.

Nothing here has a clock: whoever drives a thread passes ``now_us`` and asks when to look again.
"""

from __future__ import annotations
