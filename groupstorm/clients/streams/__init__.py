"""One thread of a Kafka Streams application as a member of its group, sans-IO.

* `topology`: the tasks of an application, by number, by name and by input partition;
* `state`: the state of tasks that a host keeps, over restarts too (StateDirectory), and how a thread reads
  changelogs to restore tasks and to update standbys (DefaultStateUpdater);
* `tasks`: the tasks of a thread, from assignment to assignment (TaskManager);
* `assignor`: a thread's subscriptions and assignments, and its assignor if it leads
  (StreamsPartitionAssignor).

Nothing here has a clock: the driver of a thread passes ``now_us`` and asks when to call again.
"""

from __future__ import annotations
