package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.VirtualCoordinator;

/** A scenario under way: its clock, its coordinator, what its clients know, and the events so far. */
final class Run {

    /** More timers than this at one instant do not end by themselves. */
    private static final int TIMERS_AT_ONCE_MAX = 100_000;

    /** A request that was made. label: the client; named: whether the step said so. */
    private record Sent(int step, Call call, String label, boolean named) {
    }

    private record Answer(Sent sent, Object response) {
    }

    private final Names names = new Names();
    private final Printing printing;
    private final GroupStates states;
    private final Clients clients = new Clients(names);
    private final VirtualClock clock = new VirtualClock();
    private final FifoTimer timer = new FifoTimer(clock);
    private final MemoryLog log = new MemoryLog();
    private final Topics topics;
    private final ShareGroups shareGroups;
    private final StreamsGroups streamsGroups;
    private final Requests requests;
    private final GroupOptions groupOptions;
    private final VirtualCoordinator coordinator;
    private final StepPersister persister = new StepPersister();
    private final boolean persisterLog;

    private final ArrayNode events = JsonNodeFactory.instance.arrayNode();
    private final Map<Integer, Sent> unanswered = new TreeMap<>();
    /** Answers that the coordinator has completed and nobody has looked at, in the order of completion. */
    private final List<Answer> completed = new ArrayList<>();
    /** Answers of this millisecond and step. */
    private final List<Answer> answers = new ArrayList<>();
    /** Before the first step there are no groups: Kafka's own timers (metrics, retention) change nothing. */
    private JsonNode lastState = JsonNodeFactory.instance.objectNode();
    private int step;

    Run(JsonNode config) {
        var scenario = new ScenarioConfig(config);
        topics = scenario.topics();
        groupOptions = scenario.groupOptions();
        printing = new Printing(names, topics);
        shareGroups = new ShareGroups(clients, names, printing);
        streamsGroups = new StreamsGroups(clients, names, scenario.topologies());
        requests = new Requests(clients, names, topics, shareGroups, streamsGroups);
        coordinator = new VirtualCoordinator(
            scenario.broker(), groupOptions.manager(), clock, timer, log, persister);
        states = new GroupStates(names, printing, shareGroups, streamsGroups, coordinator);
        persisterLog = scenario.persisterLog();
        coordinator.onMetadataUpdate(topics.apply(), topics.image());
    }

    /** One step, and everything that is due after it. */
    void take(int index, Step taken) {
        step = index;
        JsonNode as = taken.value("as");
        String label = as.isMissingNode() ? "" : as.textValue();
        if (label == null || Names.isName(label)) {
            throw new ScenarioFailed("steps[" + index + "]: as: " + as + " cannot be a client's label");
        }
        try {
            persister.answerWith(taken.optionalText("persister", null));
            if (wanted(taken, clients.get(label))) {
                carryOut(taken, label);
            }
        } catch (InvalidStep invalid) {
            event("invalid", step).put("why", invalid.getMessage());
        }
        fireDue();
        endMoment(true);
    }

    /** `when`: the client's last answer, whole or its error alone, is one of those named. */
    private static boolean wanted(Step step, Client client) {
        JsonNode when = step.value("when");
        if (when.isMissingNode() || when.isNull()) {
            return true;
        }
        List<String> accepted = new ArrayList<>();
        if (when.isArray()) {
            when.forEach(one -> accepted.add(one.asText()));
        } else {
            accepted.add(when.asText());
        }
        String last = client.last;
        return last != null && (accepted.contains(last) || accepted.contains(last.substring(last.indexOf(':') + 1)));
    }

    private void carryOut(Step taken, String label) {
        switch (taken.op()) {
            case "advance" -> advance(Step.int64("ms", taken.value("ms")));
            case "topics" -> changeTopics(taken, label);
            case "group_config" -> changeGroup(taken);
            case "reload" -> reload();
            default -> request(taken, label);
        }
    }

    private void request(Step taken, String label) {
        Call call = requests.build(taken, label);
        Errors appendError = appendError(taken);
        Sent sent = new Sent(step, call, label, taken.has("as"));
        unanswered.put(step, sent);
        clients.get(label).sent(call);
        log.refuseWith(appendError);
        call.send().apply(coordinator.service()).whenComplete((response, thrown) -> {
            if (thrown != null) {
                throw new IllegalStateException("the service did not turn this into an answer", thrown);
            }
            completed.add(new Answer(sent, response));
        });
        log.refuseWith(Errors.NONE);
        receive();
    }

    private static Errors appendError(Step taken) {
        String name = taken.optionalText("append_error", null);
        if (name == null) {
            return Errors.NONE;
        }
        try {
            return Errors.valueOf(name);
        } catch (IllegalArgumentException unknown) {
            throw new InvalidStep("append_error: " + name + " is no error's name");
        }
    }

    /** Clients remember the answers in the order of completion, that of the step's own request last. */
    private void receive() {
        coordinator.runBackground();
        completed.sort(Comparator.comparing(answer -> answer.sent().step() == step));
        for (Answer answer : completed) {
            unanswered.remove(answer.sent().step());
            clients.get(answer.sent().label()).answered(answer.sent().call(), answer.response());
        }
        answers.addAll(completed);
        completed.clear();
    }

    private void changeTopics(Step taken, String label) {
        Map<String, Integer> set = new TreeMap<>();
        for (Map.Entry<String, JsonNode> topic : taken.entries("set")) {
            set.put(topic.getKey(), Topics.count(topic.getValue()));
        }
        if (taken.value("create").asText().equals("$")) {
            set.putAll(clients.get(label).toCreate);
        }
        List<String> removed = new ArrayList<>();
        if (taken.has("remove")) {
            Step.elements("remove", taken.value("remove"))
                .forEachRemaining(topic -> removed.add(Step.text("remove", topic)));
        }
        set.forEach(topics::set);
        removed.forEach(topics::remove);
        coordinator.onMetadataUpdate(topics.apply(), topics.image());
        receive();
    }

    private void reload() {
        if (!coordinator.reload()) {
            throw new ScenarioFailed("steps[" + step + "]: the records cannot be loaded");
        }
        receive();
    }

    /** More options of one group, as IncrementalAlterConfigs sets them. */
    private void changeGroup(Step taken) {
        groupOptions.set(taken.text("group", "g"), taken.entries("set"));
    }

    /** From deadline to deadline, each at its own millisecond; what is due at the end comes with the step's end. */
    private void advance(long durationMs) {
        if (durationMs < 0) {
            throw new InvalidStep("ms: " + durationMs + " would turn the clock back");
        }
        long untilMs = clock.milliseconds() + durationMs;
        for (Long next = timer.nextDeadlineMs(); next != null && next < untilMs; next = timer.nextDeadlineMs()) {
            clock.moveTo(Math.max(next, clock.milliseconds()));
            fireDue();
            endMoment(false);
        }
        clock.moveTo(untilMs);
    }

    private void fireDue() {
        for (int fired = 0; timer.fireOne(); fired++) {
            receive();
            if (fired == TIMERS_AT_ONCE_MAX) {
                throw new ScenarioFailed(
                    "steps[" + step + "]: at " + clock.elapsedMs() + " ms timers set each other without end");
            }
        }
    }

    /** Names what was seen at this moment, then shows the answers by step and the state. */
    private void endMoment(boolean always) {
        Collection<? extends Group> groups = coordinator.groups();
        names.see(answers.stream().flatMap(answer -> Printing.ids(answer.response()).stream()).toList());
        names.see(GroupStates.ids(groups));
        answers.sort(Comparator.comparingInt(answer -> answer.sent().step()));
        for (Answer answer : answers) {
            ObjectNode event = event(answer.sent().call().kind(), answer.sent().step());
            if (answer.sent().named()) {
                event.put("as", answer.sent().label());
            }
            if (!shareGroups.print(answer.response(), event) && !streamsGroups.print(answer.response(), event)) {
                printing.print(answer.response(), event);
            }
        }
        answers.clear();
        if (persisterLog) {
            persister.asked.forEach(asked -> shareGroups.print(asked, event("initialize", step), topics));
        }
        persister.asked.clear();
        JsonNode state = states.print(groups);
        if (always || !state.equals(lastState)) {
            event("state", step).set("groups", state);
        }
        lastState = state;
    }

    private ObjectNode event(String kind, int ofStep) {
        return events.addObject().put("t", clock.elapsedMs()).put("step", ofStep).put("kind", kind);
    }

    /** All events; requests that were never answered come last. */
    ArrayNode finish() {
        unanswered.values().forEach(sent -> event("pending", sent.step()).put("of", sent.call().kind()));
        return events;
    }

    Map<String, String> ids() {
        return names.ids();
    }
}
