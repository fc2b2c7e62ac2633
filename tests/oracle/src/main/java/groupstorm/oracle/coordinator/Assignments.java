package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;

/** What a sync step carries: an object, or a plan that the leader makes by rule. */
record Assignments(Clients clients, Names names, Topics topics) {

    List<SyncGroupRequestAssignment> of(Step step, String label) {
        JsonNode value = step.value("assignments");
        if (value.isMissingNode() || value.isNull()) {
            return List.of();
        }
        String rule = value.isTextual() ? value.textValue() : "";
        return switch (rule) {
            case "auto" -> texts(clients.get(label));
            case "auto-consumer" -> dealt(clients.get(label));
            default -> given(value, label);
        };
    }

    private List<SyncGroupRequestAssignment> given(JsonNode value, String label) {
        List<SyncGroupRequestAssignment> plan = new ArrayList<>();
        for (Map.Entry<String, JsonNode> entry : Step.entries("assignments", value)) {
            String member = clients.member(label, entry.getKey());
            plan.add(entry(member, Step.base64("assignments", entry.getValue())));
        }
        return plan;
    }

    /** The bytes of "generation:name" for every member. */
    private List<SyncGroupRequestAssignment> texts(Client client) {
        return planned(client).stream()
            .map(id -> entry(id, (client.generation + ":" + names.name(id)).getBytes(StandardCharsets.UTF_8)))
            .toList();
    }

    /** All partitions, by topic and number, dealt to the members in turn. */
    private List<SyncGroupRequestAssignment> dealt(Client client) {
        List<String> members = planned(client);
        List<List<TopicPartition>> shares = new ArrayList<>();
        members.forEach(__ -> shares.add(new ArrayList<>()));
        if (members.isEmpty()) {
            return List.of();
        }
        int turn = 0;
        for (Map.Entry<String, Integer> topic : topics.partitions().entrySet()) {
            for (int number = 0; number < topic.getValue(); number++) {
                shares.get(turn++ % members.size()).add(new TopicPartition(topic.getKey(), number));
            }
        }
        List<SyncGroupRequestAssignment> plan = new ArrayList<>();
        for (int index = 0; index < members.size(); index++) {
            plan.add(entry(members.get(index), ConsumerBytes.assignment(shares.get(index))));
        }
        return plan;
    }

    /** The members that a plan of this client is for, in the order of their names: none unless it has to make one. */
    private List<String> planned(Client client) {
        if (!client.leads || client.skips) {
            return List.of();
        }
        return client.members.stream().sorted(Comparator.comparing(names::name, names.order)).toList();
    }

    private static SyncGroupRequestAssignment entry(String member, byte[] bytes) {
        return new SyncGroupRequestAssignment().setMemberId(member).setAssignment(bytes);
    }
}
