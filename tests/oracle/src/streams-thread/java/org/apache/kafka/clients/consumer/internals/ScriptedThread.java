package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import groupstorm.oracle.JsonLines;
import groupstorm.oracle.coordinator.VirtualClock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.NetworkClientDelegate.UnsentRequest;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData.Assignment;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData.TaskId;
import org.apache.kafka.clients.consumer.internals.events.BackgroundEvent;
import org.apache.kafka.clients.consumer.internals.events.BackgroundEventHandler;
import org.apache.kafka.clients.consumer.internals.events.CompletableBackgroundEvent;
import org.apache.kafka.clients.consumer.internals.events.ErrorEvent;
import org.apache.kafka.clients.consumer.internals.events.StreamsOnAllTasksLostCallbackNeededEvent;
import org.apache.kafka.clients.consumer.internals.events.StreamsOnTasksRevokedCallbackNeededEvent;
import org.apache.kafka.clients.consumer.internals.events.StreamsTasksAssignedEvent;
import org.apache.kafka.clients.consumer.internals.metrics.AsyncConsumerMetrics;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.internals.LogContext;

/**
 * Kafka's StreamsMembershipManager and StreamsGroupHeartbeatRequestManager in virtual time, one step of a script at a time. The
 * thread has the sub-topologies 0, which reads t, and 1, which reads u and v.
 */
public final class ScriptedThread {

    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final LogContext LOG = new LogContext();
    private static final Map<String, Set<String>> SOURCES = Map.of("0", Set.of("t"), "1", Set.of("u", "v"));

    private final VirtualClock clock = new VirtualClock();
    private final Deque<UnsentRequest> inFlight = new ArrayDeque<>();
    private final Deque<CompletableBackgroundEvent<Void>> callbacks = new ArrayDeque<>();
    private final Map<TaskId, Long> offsets = new HashMap<>();
    private final Map<TaskId, Long> endOffsets = new HashMap<>();
    private final SubscriptionState subscriptions = new SubscriptionState(LOG, AutoOffsetResetStrategy.EARLIEST);
    private final Coordinator coordinator = new Coordinator();
    private final StreamsRebalanceData data;
    private final StreamsMembershipManager membership;
    private final StreamsGroupHeartbeatRequestManager heartbeats;
    private CompletableFuture<Void> leave;
    private long nextMs;
    private ArrayNode seen = JSON.arrayNode();

    private ScriptedThread(JsonNode options) throws ReflectiveOperationException {
        var metrics = new Metrics();
        Map<String, StreamsRebalanceData.Subtopology> topology = new HashMap<>();
        SOURCES.forEach((name, topics) -> topology.put(
            name, new StreamsRebalanceData.Subtopology(topics, Set.of(), Map.of(), Map.of(), List.of())
        ));
        data = new StreamsRebalanceData(
            new UUID(0, 7), Optional.of(new StreamsRebalanceData.HostInfo("h", 1)), text(options, "client.rack"), topology,
            Map.of("zone", "z"), () -> Map.copyOf(offsets), () -> Map.copyOf(endOffsets)
        );
        var events = new Events(metrics);
        membership = new StreamsMembershipManager(
            "g", text(options, "group.instance.id"), data, subscriptions, events, LOG, clock, metrics
        );
        long backoffMs = options.path("retry.backoff.ms").asLong(100);
        long backoffMaxMs = options.path("retry.backoff.max.ms").asLong(1000);
        heartbeats = new StreamsGroupHeartbeatRequestManager(
            LOG, clock, config(options, backoffMs, backoffMaxMs), coordinator, membership, events, metrics, data
        );
        // Kafka's own pauses are up to a fifth shorter or longer, by chance
        var pauses = StreamsGroupHeartbeatRequestManager.class.getDeclaredField("heartbeatRequestState");
        pauses.setAccessible(true);
        pauses.set(heartbeats, new HeartbeatRequestState(LOG, clock, 0, backoffMs, backoffMaxMs, 0));
    }

    public static void main(String[] arguments) throws Exception {
        JsonLines.serve(ScriptedThread::answer);
    }

    /**
     * {"options", "steps"} -> for each step what the thread's member did, and what it is then. The answer ends before a step at
     * which Kafka's classes contradict themselves.
     */
    private static JsonNode answer(JsonNode situation) throws ReflectiveOperationException {
        ScriptedThread thread = new ScriptedThread(situation.path("options"));
        ArrayNode steps = JSON.arrayNode();
        try {
            for (JsonNode step : situation.get("steps")) {
                steps.add(thread.take(step));
            }
        } catch (RuntimeException contradiction) {
            return steps;
        }
        return steps;
    }

    private static ConsumerConfig config(JsonNode options, long backoffMs, long backoffMaxMs) {
        return new ConsumerConfig(Map.of(
            "group.id", "g",
            "bootstrap.servers", "broker:9092",
            "max.poll.interval.ms", options.path("max.poll.interval.ms").asInt(300_000),
            "retry.backoff.ms", backoffMs,
            "retry.backoff.max.ms", backoffMaxMs,
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class
        ));
    }

    private static Optional<String> text(JsonNode options, String name) {
        return Optional.ofNullable(options.path(name).asText(null));
    }

    private ObjectNode take(JsonNode step) {
        seen = JSON.arrayNode();
        JsonNode value = step.path(1);
        switch (step.get(0).asText()) {
            case "subscribe" -> {
                Set<String> topics = new HashSet<>();
                value.forEach(topic -> topics.add(topic.asText()));
                subscriptions.subscribe(topics, Optional.empty());
                membership.onSubscriptionUpdated();
            }
            case "unsubscribe" -> leaves(membership.leaveGroup());
            case "close" -> leaves(membership.leaveGroupOnClose(GroupMembershipOperation.valueOf(value.asText())));
            case "end" -> send(heartbeats.pollOnClose(clock.milliseconds()), 0);
            case "poll" -> {
                // as ApplicationEventProcessor does at an AsyncPollEvent
                membership.onConsumerPoll();
                heartbeats.resetPollTimer(clock.milliseconds());
            }
            case "step" -> step();
            case "advance" -> clock.moveTo(clock.milliseconds() + value.asLong());
            case "answer" -> complete(response(value), false, null);
            case "disconnect" -> complete(null, true, null);
            case "unsupported" -> complete(null, false, new UnsupportedVersionException("no such version"));
            case "callback_begins" -> beginCallback();
            case "callback_ends" -> endCallback(null);
            case "callback_fails" -> endCallback(new KafkaException("listener"));
            case "coordinator" -> coordinator.known = value.asBoolean();
            case "offsets" -> learn(offsets, value);
            case "end_offsets" -> learn(endOffsets, value);
            default -> throw new AssertionError("unknown step " + step);
        }
        return state();
    }

    private static void learn(Map<TaskId, Long> known, JsonNode told) {
        known.clear();
        told.properties().forEach(one -> known.put(task(one.getKey()), one.getValue().asLong()));
    }

    private static TaskId task(String name) {
        int line = name.indexOf('_');
        return new TaskId(name.substring(0, line), Integer.parseInt(name.substring(line + 1)));
    }

    /** A member that is leaving hands out the same future again. */
    private void leaves(CompletableFuture<Void> future) {
        if (future != leave) {
            leave = future;
            future.whenComplete((nothing, error) -> see("left", JSON.booleanNode(true)));
        }
    }

    /** As ConsumerNetworkThread.runOnce does. */
    private void step() {
        nextMs = Long.MAX_VALUE;
        NetworkClientDelegate.PollResult result;
        int before = seen.size();
        try {
            result = heartbeats.poll(clock.milliseconds());
        } catch (IllegalStateException problem) {
            return; // ConsumerNetworkThread logs it and goes on
        }
        nextMs = result.timeUntilNextPollMs;
        send(result, before);
        membership.poll(clock.milliseconds());
    }

    private void send(NetworkClientDelegate.PollResult result, int before) {
        for (UnsentRequest request : result.unsentRequests) {
            inFlight.add(request);
            var asked = ((StreamsGroupHeartbeatRequest) request.requestBuilder().build((short) 1)).data();
            // the request was made before what came of it
            seen.insert(before, JSON.objectNode().set("sent", fields(asked)));
        }
    }

    private void complete(StreamsGroupHeartbeatResponse response, boolean disconnected, UnsupportedVersionException problem) {
        long nowMs = clock.milliseconds();
        UnsentRequest request = inFlight.poll();
        if (request != null) {
            request.handler().onComplete(
                new ClientResponse(null, request.handler(), "1", nowMs, nowMs, disconnected, problem, null, response)
            );
        }
    }

    /** As AsyncKafkaConsumer's application thread does before it calls the listener. */
    private void beginCallback() {
        if (callbacks.peek() instanceof StreamsTasksAssignedEvent event) {
            try {
                membership.applyAssignment(event.assignedPartitions(), event.addedPartitions());
            } catch (IllegalArgumentException unsubscribed) {
                see("failed", JSON.textNode("IllegalArgumentException"));
                callbacks.remove().future().completeExceptionally(unsubscribed);
            }
        }
    }

    /** As DefaultStreamsRebalanceListener does, of which the last act is to tell what the thread has. */
    private void endCallback(KafkaException problem) {
        var event = callbacks.poll();
        if (event == null) {
            return;
        }
        if (problem != null) {
            event.future().completeExceptionally(problem);
            return;
        }
        if (event instanceof StreamsTasksAssignedEvent assigned) {
            data.setReconciledAssignment(assigned.assignment());
        } else if (event instanceof StreamsOnAllTasksLostCallbackNeededEvent) {
            data.setReconciledAssignment(Assignment.EMPTY);
        }
        event.future().complete(null);
    }

    private void forApplication(BackgroundEvent event) {
        if (event instanceof ErrorEvent problem) {
            see("failed", JSON.textNode(Errors.forException(problem.error()).name()));
            return;
        }
        ObjectNode callback = JSON.objectNode();
        if (event instanceof StreamsTasksAssignedEvent assigned) {
            callback.put("method", "onTasksAssigned").set("active", tasks(assigned.assignment().activeTasks()));
            callback.set("standby", tasks(assigned.assignment().standbyTasks()));
            callback.set("warmup", tasks(assigned.assignment().warmupTasks()));
            callback.put("ready", assigned.assignment().isGroupReady()).set("added", partitions(assigned.addedPartitions()));
            callbacks.add(assigned);
        } else if (event instanceof StreamsOnTasksRevokedCallbackNeededEvent revoked) {
            callback.put("method", "onTasksRevoked").set("active", tasks(revoked.activeTasksToRevoke()));
            callbacks.add(revoked);
        } else {
            callback.put("method", "onAllTasksLost");
            callbacks.add((StreamsOnAllTasksLostCallbackNeededEvent) event);
        }
        see("callback", callback);
    }

    private static StreamsGroupHeartbeatResponse response(JsonNode value) {
        var data = new StreamsGroupHeartbeatResponseData()
            .setErrorCode(Errors.valueOf(value.path("error").asText("NONE")).code())
            .setMemberEpoch(value.path("epoch").asInt(0))
            .setHeartbeatIntervalMs(value.path("interval").asInt(0))
            .setEndpointInformationEpoch(value.path("endpoint_epoch").asInt(0))
            .setAcceptableRecoveryLag(value.path("recovery_lag").asInt(0))
            .setTaskOffsetIntervalMs(value.path("offset_interval").asInt(0));
        List<StreamsGroupHeartbeatResponseData.Status> statuses = new ArrayList<>();
        value.path("status").forEach(code -> statuses.add(
            new StreamsGroupHeartbeatResponseData.Status().setStatusCode((byte) code.asInt()).setStatusDetail("")
        ));
        data.setStatus(statuses);
        if (value.has("active")) {
            data.setActiveTasks(ids(value.path("active"))).setStandbyTasks(ids(value.path("standby")))
                .setWarmupTasks(ids(value.path("warmup")));
        }
        return new StreamsGroupHeartbeatResponse(data);
    }

    private static List<StreamsGroupHeartbeatResponseData.TaskIds> ids(JsonNode tasks) {
        List<StreamsGroupHeartbeatResponseData.TaskIds> ids = new ArrayList<>();
        tasks.properties().forEach(one -> {
            List<Integer> numbers = new ArrayList<>();
            one.getValue().forEach(number -> numbers.add(number.asInt()));
            ids.add(new StreamsGroupHeartbeatResponseData.TaskIds().setSubtopologyId(one.getKey()).setPartitions(numbers));
        });
        return ids;
    }

    /** What a request says; names in order, because Kafka's order is that of a HashMap. */
    private static ObjectNode fields(StreamsGroupHeartbeatRequestData asked) {
        ObjectNode fields = JSON.objectNode().put("group", asked.groupId()).put("epoch", asked.memberEpoch());
        fields.put("instance", asked.instanceId()).put("rack", asked.rackId()).put("rebalance_timeout", asked.rebalanceTimeoutMs());
        fields.put("process", asked.processId()).put("endpoint_epoch", asked.endpointInformationEpoch());
        fields.put("endpoint", asked.userEndpoint() == null ? null : asked.userEndpoint().host() + ":" + asked.userEndpoint().port());
        fields.put("tags", asked.clientTags() == null ? 0 : asked.clientTags().size());
        ArrayNode topology = asked.topology() == null ? null : JSON.arrayNode();
        if (topology != null) {
            asked.topology().subtopologies().forEach(one -> topology.add(one.subtopologyId() + ":" + String.join(",", one.sourceTopics())));
        }
        fields.set("topology", topology);
        fields.set("active", told(asked.activeTasks()));
        fields.set("standby", told(asked.standbyTasks()));
        fields.set("warmup", told(asked.warmupTasks()));
        fields.set("offsets", toldOffsets(asked.taskOffsets()));
        fields.set("end_offsets", toldOffsets(asked.taskEndOffsets()));
        return fields.put("shutdown", asked.shutdownApplication());
    }

    private static JsonNode told(List<StreamsGroupHeartbeatRequestData.TaskIds> ids) {
        if (ids == null) {
            return null;
        }
        Set<TaskId> tasks = new TreeSet<>();
        ids.forEach(one -> one.partitions().forEach(number -> tasks.add(new TaskId(one.subtopologyId(), number))));
        return tasks(tasks);
    }

    private static JsonNode toldOffsets(List<StreamsGroupHeartbeatRequestData.TaskOffset> told) {
        if (told == null) {
            return null;
        }
        Map<String, Long> sorted = new TreeMap<>();
        told.forEach(one -> sorted.put(one.subtopologyId() + "_" + one.partition(), one.offset()));
        ObjectNode named = JSON.objectNode();
        sorted.forEach(named::put);
        return named;
    }

    private static ArrayNode tasks(Collection<TaskId> tasks) {
        ArrayNode names = JSON.arrayNode();
        new TreeSet<>(tasks).forEach(one -> names.add(one.subtopologyId() + "_" + one.partitionId()));
        return names;
    }

    private static ArrayNode partitions(Collection<TopicPartition> partitions) {
        ArrayNode names = JSON.arrayNode();
        partitions.stream().map(TopicPartition::toString).sorted().forEach(names::add);
        return names;
    }

    private ObjectNode state() {
        ObjectNode state = JSON.objectNode().put("state", membership.state().name()).put("epoch", membership.memberEpoch());
        state.set("owned", partitions(subscriptions.assignedPartitions()));
        state.put("next", nextMs).put("wait", heartbeats.maximumTimeToWait(clock.milliseconds()));
        state.put("coordinator", coordinator.known);
        state.set("seen", seen);
        return state;
    }

    private void see(String what, JsonNode value) {
        seen.add(JSON.objectNode().set(what, value));
    }

    /** A coordinator that is known or not. Kafka's own finds it with a random pause. */
    private static final class Coordinator extends CoordinatorRequestManager {

        private boolean known = true;

        Coordinator() {
            super(LOG, 100, 1000, "g");
        }

        @Override
        public Optional<Node> coordinator() {
            return known ? Optional.of(new Node(1, "broker", 9092)) : Optional.empty();
        }

        @Override
        public void markCoordinatorUnknown(String cause, long nowMs) {
            known = false;
        }
    }

    /** Hands every event for the application to the script. */
    private final class Events extends BackgroundEventHandler {

        Events(Metrics metrics) {
            super(new LinkedBlockingQueue<>(), clock, new AsyncConsumerMetrics(metrics, "consumer"));
        }

        @Override
        public void add(BackgroundEvent event) {
            forApplication(event);
        }
    }
}
