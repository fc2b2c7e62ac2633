package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import groupstorm.oracle.coordinator.VirtualClock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.consumer.internals.NetworkClientDelegate.UnsentRequest;
import org.apache.kafka.clients.consumer.internals.events.BackgroundEvent;
import org.apache.kafka.clients.consumer.internals.events.CompletableBackgroundEvent;
import org.apache.kafka.clients.consumer.internals.events.ErrorEvent;
import org.apache.kafka.clients.consumer.internals.events.PartitionsAssignedEvent;
import org.apache.kafka.clients.consumer.internals.events.PartitionsRemovedEvent;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Timer;

/** Kafka's ConsumerMembershipManager and ConsumerHeartbeatRequestManager in virtual time, one step of a script at a time. */
public final class ScriptedMember {

    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final long TOPIC_IDS = 0xFEED;

    private final VirtualClock clock = new VirtualClock();
    private final Deque<UnsentRequest> inFlight = new ArrayDeque<>();
    private final Deque<CompletableBackgroundEvent<Void>> callbacks = new ArrayDeque<>();
    private final SubscriptionState subscriptions;
    private final MemberParts.Coordinator coordinator = new MemberParts.Coordinator("g");
    private final MemberParts.Topics topics;
    private final CommitRequestManager commits;
    private final Deque<UnsentRequest> committing = new ArrayDeque<>();
    private final MemberParts.Membership membership;
    private final ConsumerHeartbeatRequestManager heartbeats;
    private final Set<TopicPartition> stopped = new HashSet<>();
    private CompletableFuture<Void> leave;
    private long nextMs;
    private ArrayNode seen = JSON.arrayNode();

    private ScriptedMember(MemberSettings settings) {
        var config = settings.config();
        var metrics = new Metrics();
        var log = new LogContext();
        subscriptions = new SubscriptionState(log, AutoOffsetResetStrategy.EARLIEST);
        topics = new MemberParts.Topics(config, subscriptions, () -> see("metadata", JSON.booleanNode(true)));
        commits = MemberParts.commits(clock, subscriptions, settings, coordinator, metrics, topics);
        var events = new MemberParts.Events(clock, metrics, this::forApplication);
        membership = new MemberParts.Membership(
            settings, subscriptions, commits, topics, events, clock, metrics, this::stop
        );
        Timer pollTimer = clock.timer(settings.maxPollIntervalMs());
        // Kafka's own pauses are up to a fifth shorter or longer, by chance
        var state = new HeartbeatRequestState(log, clock, 0, settings.retryBackoffMs(), settings.retryBackoffMaxMs(), 0);
        heartbeats = new ConsumerHeartbeatRequestManager(
            log, pollTimer, config, coordinator, membership,
            new ConsumerHeartbeatRequestManager.HeartbeatState(subscriptions, membership, settings.maxPollIntervalMs()),
            state, events, metrics
        );
    }

    /** {"options", "steps"} -> for each step what the member did, and what it is then. */
    public static JsonNode answer(JsonNode situation) {
        ScriptedMember member = new ScriptedMember(new MemberSettings(situation.path("options")));
        ArrayNode steps = JSON.arrayNode();
        for (JsonNode step : situation.get("steps")) {
            steps.add(member.take(step));
        }
        return steps;
    }

    private ObjectNode take(JsonNode step) {
        seen = JSON.arrayNode();
        JsonNode value = step.path(1);
        switch (step.get(0).asText()) {
            case "subscribe" -> subscribe(value);
            case "subscribe_regex" -> {
                subscriptions.subscribe(new SubscriptionPattern(value.asText()), Optional.of(new Silent()));
                membership.onSubscriptionUpdated();
            }
            case "unsubscribe" -> leaves(membership.leaveGroup());
            case "close" -> leaves(membership.leaveGroupOnClose(GroupMembershipOperation.valueOf(value.asText())));
            case "end" -> send(heartbeats.pollOnClose(clock.milliseconds()), 0);
            case "poll" -> poll();
            case "step" -> step();
            case "advance" -> clock.moveTo(clock.milliseconds() + value.asLong());
            case "answer" -> complete(response(value), false, null);
            case "disconnect" -> complete(null, true, null);
            case "unsupported" -> complete(null, false, new UnsupportedVersionException("no such version"));
            case "commit_ends" -> {
                step();
                committed(Errors.NONE.name());
            }
            case "commit_answer" -> committed(value.asText());
            case "callback_begins" -> beginCallback();
            case "callback_ends" -> endCallback(null);
            case "callback_fails" -> endCallback(new KafkaException("listener"));
            case "topic" -> topics.learn(topicId(value.asText()), value.asText());
            case "no_topic" -> topics.forget(topicId(value.asText()));
            case "coordinator" -> coordinator.known(value.asBoolean());
            default -> throw new IllegalArgumentException("unknown step " + step);
        }
        return state();
    }

    /** A member that is leaving hands out the same future again. */
    private void leaves(CompletableFuture<Void> future) {
        if (future != leave) {
            leave = future;
            future.whenComplete((nothing, error) -> see("left", JSON.booleanNode(true)));
        }
    }

    private void subscribe(JsonNode names) {
        Set<String> wanted = new HashSet<>();
        names.forEach(name -> wanted.add(name.asText()));
        subscriptions.subscribe(wanted, Optional.of(new Silent()));
        membership.onSubscriptionUpdated();
    }

    /** As ApplicationEventProcessor does at an AsyncPollEvent. */
    private void poll() {
        membership.maybeReconcile(true);
        membership.onConsumerPoll();
        heartbeats.resetPollTimer(clock.milliseconds());
    }

    /** As ConsumerNetworkThread.runOnce does. */
    private void step() {
        nextMs = Long.MAX_VALUE;
        NetworkClientDelegate.PollResult commit = commits.poll(clock.milliseconds());
        for (UnsentRequest request : commit.unsentRequests) {
            committing.add(request);
            int epoch = ((OffsetCommitRequest) request.requestBuilder().build((short) 9)).data().generationIdOrMemberEpoch();
            see("commit", JSON.numberNode(epoch));
        }
        NetworkClientDelegate.PollResult result;
        int before = seen.size();
        try {
            result = heartbeats.poll(clock.milliseconds());
        } catch (IllegalStateException problem) {
            return; // ConsumerNetworkThread logs it and goes on
        }
        nextMs = Math.min(commit.timeUntilNextPollMs, result.timeUntilNextPollMs);
        send(result, before);
        membership.poll(clock.milliseconds());
    }

    private void send(NetworkClientDelegate.PollResult result, int before) {
        for (UnsentRequest request : result.unsentRequests) {
            inFlight.add(request);
            JsonNode told = fields((ConsumerGroupHeartbeatRequestData) request.requestBuilder().build((short) 1).data());
            // the request was made before what came of it
            seen.insert(before, JSON.objectNode().set("sent", told));
        }
    }

    /** To the oldest commit under way: every partition has that error; DISCONNECT: its connection is lost. */
    private void committed(String error) {
        UnsentRequest request = committing.poll();
        if (request == null) {
            return;
        }
        boolean disconnected = error.equals("DISCONNECT");
        var asked = ((OffsetCommitRequest) request.requestBuilder().build((short) 9)).data();
        OffsetCommitResponse response = disconnected ? null
            : new OffsetCommitResponse(OffsetCommitRequest.getErrorResponse(asked, Errors.valueOf(error)));
        long nowMs = clock.milliseconds();
        request.handler().onComplete(
            new ClientResponse(null, request.handler(), "1", nowMs, nowMs, disconnected, null, null, response)
        );
    }

    private void complete(ConsumerGroupHeartbeatResponse response, boolean disconnected, UnsupportedVersionException problem) {
        long nowMs = clock.milliseconds();
        UnsentRequest request = inFlight.poll();
        if (request == null) {
            return;
        }
        request.handler().onComplete(
            new ClientResponse(null, request.handler(), "1", nowMs, nowMs, disconnected, problem, null, response)
        );
    }

    /** As AsyncKafkaConsumer's application thread does before it calls the listener. */
    private void beginCallback() {
        if (callbacks.peek() instanceof PartitionsAssignedEvent event) {
            try {
                membership.apply(event.assignedPartitions(), event.addedPartitions());
                event.addedPartitions().forEach(partition -> subscriptions.seek(partition, 0));
            } catch (IllegalArgumentException unsubscribed) {
                see("failed", JSON.textNode("IllegalArgumentException"));
                callbacks.remove().future().completeExceptionally(unsubscribed);
            }
        }
    }

    private void endCallback(KafkaException problem) {
        if (callbacks.isEmpty()) {
            return;
        }
        if (problem == null) {
            callbacks.remove().future().complete(null);
        } else {
            callbacks.remove().future().completeExceptionally(problem);
        }
    }

    private void forApplication(BackgroundEvent event) {
        if (event instanceof ErrorEvent problem) {
            see("failed", JSON.textNode(Errors.forException(problem.error()).name()));
        } else if (event instanceof PartitionsRemovedEvent removed) {
            see("callback", callback(removed.methodName().fullyQualifiedMethodName(), removed.partitions()));
            callbacks.add(removed);
        } else {
            PartitionsAssignedEvent assigned = (PartitionsAssignedEvent) event;
            see("callback", callback("onPartitionsAssigned", assigned.addedPartitions()));
            callbacks.add(assigned);
        }
    }

    /** Kafka marks partitions again and again: only the first time counts. */
    private void stop(Set<TopicPartition> partitions) {
        stopped.retainAll(subscriptions.assignedPartitions());
        List<TopicPartition> stops = partitions.stream().filter(partition -> !stopped.contains(partition)).toList();
        if (!stops.isEmpty()) {
            stopped.addAll(stops);
            see("stop", partitions(stops));
        }
    }

    private static ConsumerGroupHeartbeatResponse response(JsonNode value) {
        var data = new ConsumerGroupHeartbeatResponseData()
            .setErrorCode(Errors.valueOf(value.path("error").asText("NONE")).code())
            .setMemberEpoch(value.path("epoch").asInt(0))
            .setHeartbeatIntervalMs(value.path("interval").asInt(0));
        if (value.has("assignment")) {
            List<ConsumerGroupHeartbeatResponseData.TopicPartitions> assigned = new ArrayList<>();
            value.get("assignment").properties().forEach(topic -> {
                List<Integer> numbers = new ArrayList<>();
                topic.getValue().forEach(number -> numbers.add(number.asInt()));
                assigned.add(new ConsumerGroupHeartbeatResponseData.TopicPartitions()
                    .setTopicId(topicId(topic.getKey())).setPartitions(numbers));
            });
            data.setAssignment(new ConsumerGroupHeartbeatResponseData.Assignment().setTopicPartitions(assigned));
        }
        return new ConsumerGroupHeartbeatResponse(data);
    }

    private static ObjectNode callback(String method, Collection<TopicPartition> partitions) {
        ObjectNode callback = JSON.objectNode().put("method", method.substring(method.lastIndexOf('.') + 1));
        callback.set("partitions", partitions(partitions));
        return callback;
    }

    private static ArrayNode partitions(Collection<TopicPartition> partitions) {
        ArrayNode names = JSON.arrayNode();
        partitions.stream().map(TopicPartition::toString).sorted().forEach(names::add);
        return names;
    }

    /** What a request says; names and partitions in order, because Kafka's order is that of a HashMap. */
    private static ObjectNode fields(ConsumerGroupHeartbeatRequestData data) {
        ObjectNode fields = JSON.objectNode().put("group", data.groupId()).put("epoch", data.memberEpoch());
        fields.put("instance", data.instanceId()).put("rack", data.rackId()).put("rebalance_timeout", data.rebalanceTimeoutMs());
        fields.set("topics", data.subscribedTopicNames() == null ? null : texts(data.subscribedTopicNames()));
        fields.put("regex", data.subscribedTopicRegex()).put("assignor", data.serverAssignor());
        if (data.topicPartitions() == null) {
            return fields.putNull("owned");
        }
        Map<String, List<Integer>> owned = new TreeMap<>();
        data.topicPartitions().forEach(topic -> owned.put(topicName(topic.topicId()), topic.partitions()));
        ObjectNode told = fields.putObject("owned");
        owned.forEach((topic, numbers) -> {
            ArrayNode list = told.putArray(topic);
            numbers.forEach(list::add);
        });
        return fields;
    }

    private static ArrayNode texts(Collection<String> values) {
        ArrayNode texts = JSON.arrayNode();
        values.stream().sorted().forEach(texts::add);
        return texts;
    }

    private ObjectNode state() {
        ObjectNode state = JSON.objectNode().put("state", membership.state().name()).put("epoch", membership.memberEpoch());
        state.set("owned", partitions(subscriptions.assignedPartitions()));
        state.put("next", nextMs).put("wait", heartbeats.maximumTimeToWait(clock.milliseconds()));
        state.put("coordinator", coordinator.coordinator().isPresent());
        state.set("seen", seen);
        return state;
    }

    private void see(String what, JsonNode value) {
        seen.add(JSON.objectNode().set(what, value));
    }

    /** A topic's id is made of its name's first letter. */
    private static Uuid topicId(String name) {
        return new Uuid(TOPIC_IDS, name.charAt(0));
    }

    private static String topicName(Uuid id) {
        return String.valueOf((char) id.getLeastSignificantBits());
    }

    private static final class Silent implements ConsumerRebalanceListener {

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        }
    }
}
