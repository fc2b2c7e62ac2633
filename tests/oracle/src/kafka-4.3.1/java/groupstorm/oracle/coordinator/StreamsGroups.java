package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.coordinator.group.Group;

/** Streams groups (KIP-1071) are asked of Kafka 4.4.0 alone. */
record StreamsGroups(Clients clients, Names names, JsonNode topologies) {

    Call build(Step step, String label) {
        throw new InvalidStep("op: " + step.op() + " is not offered");
    }

    boolean print(Object response, ObjectNode event) {
        return false;
    }

    boolean print(Group group, ObjectNode state) {
        return false;
    }
}
