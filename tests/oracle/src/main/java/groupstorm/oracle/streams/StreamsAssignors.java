package groupstorm.oracle.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongSupplier;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.ThreadsDoor;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentDoor;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentDoor.Warmups;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/** A case of `groupstorm assign --mode streams`, answered by the task assignors of Kafka Streams. */
public final class StreamsAssignors {

    private static final int HIGH_AVAILABILITY_TRAFFIC_COST = 10;
    private static final int HIGH_AVAILABILITY_NON_OVERLAP_COST = 1;

    private final StreamsCase asked;
    private final String name;
    private final Map<ProcessId, ClientState> states;
    private final ObjectNode answer = JsonNodeFactory.instance.objectNode();
    private Warmups warmups;

    private StreamsAssignors(JsonNode question) {
        asked = new StreamsCase(question);
        name = question.get("assignor").textValue();
        states = asked.states();
        answer.set("id", question.get("id"));
    }

    /** The answer as groupstorm gives it; what Kafka throws is its simple name and its message. */
    public static JsonNode answer(JsonNode question) {
        try {
            return new StreamsAssignors(question).answered();
        } catch (RuntimeException | Error thrown) {
            ObjectNode refusal = JsonNodeFactory.instance.objectNode();
            refusal.set("id", question.get("id"));
            return refusal.put("error", thrown.getClass().getSimpleName()).put("message", thrown.getMessage());
        }
    }

    private ObjectNode answered() {
        switch (name) {
            case "price" -> asked.give(states);
            case "optimize-active", "optimize-standby" -> optimize();
            case "sticky" -> answer.put("probing", PublicSticky.assign(asked, states));
            default -> assign();
        }
        ObjectNode clients = answer.putObject("clients");
        for (JsonNode client : asked.question.get("clients")) {
            clients.set(StreamsCase.name(client), told(client));
        }
        prices(answer.putObject("cost"));
        return answer;
    }

    private void assign() {
        answer.put("probing", AssignmentDoor.assignor(name).assign(
            states, asked.all(), asked.stateful, asked.rackAware(asked.configs), asked.configs));
        if (name.equals("ha")) {
            warmups = AssignmentDoor.warmups(
                asked.states(), asked.all(), asked.stateful, asked.rackAware(asked.configs), asked.configs);
        }
    }

    private void optimize() {
        asked.give(states);
        RackAwareTaskAssignor racks = allRacks();
        int traffic = asked.configs.rackAwareTrafficCost().orElse(HIGH_AVAILABILITY_TRAFFIC_COST);
        int nonOverlap = asked.configs.rackAwareNonOverlapCost().orElse(HIGH_AVAILABILITY_NON_OVERLAP_COST);
        var sorted = new TreeMap<>(states);
        answer.put("optimized_cost", name.equals("optimize-active")
            ? racks.optimizeActiveTasks(held(ClientState::activeTasks), sorted, traffic, nonOverlap)
            : racks.optimizeStandbyTasks(sorted, traffic, nonOverlap, AssignmentDoor.mayMove(asked.configs)));
    }

    private interface Held {
        Set<TaskId> of(ClientState state);
    }

    private SortedSet<TaskId> held(Held held) {
        var tasks = new TreeSet<TaskId>();
        states.values().forEach(state -> tasks.addAll(held.of(state)));
        return tasks;
    }

    // -- what the clients have ----------------------------------------------------------------------

    private ObjectNode told(JsonNode client) {
        ProcessId id = StreamsCase.process(StreamsCase.name(client));
        ClientState state = states.get(id);
        ObjectNode told = JsonNodeFactory.instance.objectNode();
        told.set("active", names(new TreeSet<>(state.activeTasks())));
        told.set("standby", names(new TreeSet<>(state.standbyTasks())));
        if (client.has("consumers") && !client.has("lags")) {
            told.set("threads", threads(client, state));
        }
        if (warmups != null) {
            told.set("warmup", names(new TreeSet<>(warmups.active().getOrDefault(id, Set.of()))));
            standbyWarmups(told, id);
        }
        return told;
    }

    /**
     * A standby of before that is still there, not caught up, of a task that has more standbys than before:
     * a movement left it. Null where fewer than these were left: Kafka does not tell which.
     */
    private void standbyWarmups(ObjectNode told, ProcessId id) {
        var left = new TreeSet<TaskId>();
        for (TaskId task : warmups.before().get(id)) {
            long added = states.entrySet().stream().filter(entry -> entry.getValue().standbyTasks().contains(task)
                && !warmups.before().get(entry.getKey()).contains(task)).count();
            List<ProcessId> staying = staying(task);
            long removed = warmups.before().values().stream().filter(tasks -> tasks.contains(task)).count()
                - states.entrySet().stream().filter(entry -> entry.getValue().standbyTasks().contains(task)
                    && warmups.before().get(entry.getKey()).contains(task)).count();
            if (added > removed && staying.contains(id)) {
                if (staying.size() != added - removed) {
                    told.putNull("standby_warmup");
                    return;
                }
                left.add(task);
            }
        }
        told.set("standby_warmup", names(left));
    }

    /** The clients that have kept a standby that others are nearer to. */
    private List<ProcessId> staying(TaskId task) {
        long nearest = states.values().stream().mapToLong(state -> state.lagFor(task)).min().orElseThrow();
        return states.entrySet().stream()
            .filter(entry -> entry.getValue().standbyTasks().contains(task))
            .map(Map.Entry::getKey)
            .filter(id -> warmups.before().get(id).contains(task))
            .filter(id -> !warmups.active().getOrDefault(id, Set.of()).contains(task))
            .filter(id -> !warmups.caughtUp().get(task).contains(id) && states.get(id).lagFor(task) > nearest)
            .toList();
    }

    private ObjectNode threads(JsonNode client, ClientState state) {
        var consumers = new TreeSet<String>();
        client.get("consumers").forEach(consumer -> consumers.add(consumer.get("id").textValue()));
        Map<String, Integer> load = new HashMap<>();
        Map<String, List<TaskId>> active =
            ThreadsDoor.assign(state.statefulActiveTasks(), true, consumers, state, load);
        Map<String, List<TaskId>> standby = ThreadsDoor.assign(state.standbyTasks(), true, consumers, state, load);
        ThreadsDoor.assign(state.statelessActiveTasks(), false, consumers, state, load)
            .forEach((consumer, tasks) -> active.get(consumer).addAll(tasks));
        ObjectNode threads = JsonNodeFactory.instance.objectNode();
        for (String consumer : consumers) {
            ObjectNode own = threads.putObject(consumer);
            own.set("active", names(active.get(consumer)));
            own.set("standby", names(standby.get(consumer)));
        }
        return threads;
    }

    private static ArrayNode names(Collection<TaskId> tasks) {
        ArrayNode names = JsonNodeFactory.instance.arrayNode();
        tasks.forEach(task -> names.add(task.toString()));
        return names;
    }

    // -- what it costs --------------------------------------------------------------------------------

    private void prices(ObjectNode prices) {
        AssignmentConfigs own = asked.configs;
        int traffic = own.rackAwareTrafficCost().orElse(
            name.equals("legacy-sticky") || name.equals("sticky") ? 1 : HIGH_AVAILABILITY_TRAFFIC_COST);
        RackAwareTaskAssignor racks = allRacks();
        var sorted = new TreeMap<>(states);
        var stateful = new TreeSet<>(asked.stateful);
        var stateless = new TreeSet<>(asked.all());
        stateless.removeAll(stateful);
        var all = new TreeSet<>(asked.all());
        SortedSet<TaskId> standbys = held(ClientState::standbyTasks);
        prices.put("traffic_cost", traffic);
        price(prices, "active_stateful", () -> AssignmentDoor.activeCost(racks, stateful, sorted, traffic));
        price(prices, "active_stateless", () -> AssignmentDoor.activeCost(racks, stateless, sorted, 1));
        price(prices, "active_cross_rack", () -> AssignmentDoor.activeCost(racks, all, sorted, 1));
        price(prices, "standby", () -> AssignmentDoor.standbyCost(racks, standbys, sorted, traffic));
        price(prices, "standby_cross_rack", () -> AssignmentDoor.standbyCost(racks, standbys, sorted, 1));
    }

    /** Knows the racks of changelogs too, whatever the case's settings say. */
    private RackAwareTaskAssignor allRacks() {
        AssignmentConfigs own = asked.configs;
        String strategy = own.rackAwareAssignmentStrategy();
        RackAwareTaskAssignor racks = asked.rackAware(new AssignmentConfigs(
            own.acceptableRecoveryLag(), own.maxWarmupReplicas(), 1, own.probingRebalanceIntervalMs(),
            own.rackAwareAssignmentTags(), own.rackAwareTrafficCost(), own.rackAwareNonOverlapCost(),
            strategy.equals("none") ? "min_traffic" : strategy));
        racks.canEnableRackAwareAssignor();
        return racks;
    }

    private static void price(ObjectNode prices, String what, LongSupplier cost) {
        try {
            prices.put(what, cost.getAsLong());
        } catch (IllegalStateException refused) {
            prices.putNull(what).put(what + "_error", refused.getClass().getSimpleName() + ": " + refused.getMessage());
        }
    }
}
