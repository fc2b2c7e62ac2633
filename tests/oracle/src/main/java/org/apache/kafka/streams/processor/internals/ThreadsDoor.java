package org.apache.kafka.streams.processor.internals;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;

/** StreamsPartitionAssignor keeps this to its package. */
public final class ThreadsDoor {

    private ThreadsDoor() {
    }

    public static Map<String, List<TaskId>> assign(
        Collection<TaskId> tasks, boolean stateful, SortedSet<String> consumers, ClientState state,
        Map<String, Integer> load
    ) {
        return StreamsPartitionAssignor.assignTasksToThreads(tasks, stateful, consumers, state, load);
    }
}
