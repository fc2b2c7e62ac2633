package org.apache.kafka.streams.processor.internals.assignment;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor.MoveStandbyTaskPredicate;

/** What Kafka's task assignors keep to their package. */
public final class AssignmentDoor {

    private AssignmentDoor() {
    }

    public static LegacyTaskAssignor assignor(String name) {
        return switch (name) {
            case "ha" -> new HighAvailabilityTaskAssignor();
            case "legacy-sticky" -> new LegacyStickyTaskAssignor();
            case "fallback-prior" -> new FallbackPriorTaskAssignor();
            default -> throw new IllegalArgumentException("no task assignor of Kafka: " + name);
        };
    }

    public static long activeCost(
        RackAwareTaskAssignor racks, SortedSet<TaskId> tasks, SortedMap<ProcessId, ClientState> states, int traffic
    ) {
        return racks.activeTasksCost(tasks, states, traffic, 0);
    }

    public static long standbyCost(
        RackAwareTaskAssignor racks, SortedSet<TaskId> tasks, SortedMap<ProcessId, ClientState> states, int traffic
    ) {
        return racks.standByTasksCost(tasks, states, traffic, 0);
    }

    public static MoveStandbyTaskPredicate mayMove(AssignmentConfigs configs) {
        return StandbyTaskAssignorFactory.create(configs, null)::isAllowedTaskMovement;
    }

    /** The steps of HighAvailabilityTaskAssignor one by one, to see the warm-ups, which it keeps to itself. */
    public static Warmups warmups(
        Map<ProcessId, ClientState> clients, Set<TaskId> all, Set<TaskId> stateful, RackAwareTaskAssignor racks,
        AssignmentConfigs configs
    ) {
        var tasks = new TreeSet<>(stateful);
        var states = new TreeMap<>(clients);
        step("assignActiveStatefulTasks", null, states, tasks, racks, configs);
        step("assignStandbyReplicaTasks", new HighAvailabilityTaskAssignor(), states, all, tasks, racks, configs);
        Map<TaskId, SortedSet<ProcessId>> caughtUp =
            step("tasksToCaughtUpClients", null, tasks, states, configs.acceptableRecoveryLag());
        Map<TaskId, SortedSet<ProcessId>> byLag = step("tasksToClientByLag", null, tasks, states);
        var left = new AtomicInteger(configs.maxWarmupReplicas());
        Map<ProcessId, Set<TaskId>> warmups = new TreeMap<>();
        TaskMovement.assignActiveTaskMovements(caughtUp, byLag, states, warmups, left);
        Map<ProcessId, Set<TaskId>> before = standbys(states);
        TaskMovement.assignStandbyTaskMovements(caughtUp, byLag, states, left, warmups);
        return new Warmups(warmups, before, caughtUp);
    }

    /** Per client: warm-ups of active tasks, and all standbys before standbys were moved. */
    public record Warmups(
        Map<ProcessId, Set<TaskId>> active, Map<ProcessId, Set<TaskId>> before,
        Map<TaskId, SortedSet<ProcessId>> caughtUp
    ) {
    }

    private static Map<ProcessId, Set<TaskId>> standbys(Map<ProcessId, ClientState> states) {
        Map<ProcessId, Set<TaskId>> copy = new TreeMap<>();
        states.forEach((id, state) -> copy.put(id, new TreeSet<>(state.standbyTasks())));
        return copy;
    }

    @SuppressWarnings("unchecked")
    private static <T> T step(String name, Object assignor, Object... arguments) {
        Method method = Arrays.stream(HighAvailabilityTaskAssignor.class.getDeclaredMethods())
            .filter(declared -> declared.getName().equals(name)).findFirst().orElseThrow();
        method.setAccessible(true);
        try {
            return (T) method.invoke(assignor, arguments);
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw new IllegalStateException(thrown);
        } catch (IllegalAccessException thrown) {
            throw new IllegalStateException(thrown);
        }
    }
}
