package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroup;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroupMember;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;

/** Kafka's answers as the script's events. */
record Printing(Names names, Topics topics) {

    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    /** The member ids that an answer shows. */
    static List<String> ids(Object response) {
        List<String> ids = new ArrayList<>();
        if (response instanceof JoinGroupResponseData join) {
            ids.add(join.memberId());
            ids.add(join.leader());
            join.members().forEach(member -> ids.add(member.memberId()));
        } else if (response instanceof LeaveGroupResponseData leave) {
            leave.members().forEach(member -> ids.add(member.memberId()));
        } else if (response instanceof DescribedGroup group) {
            group.members().forEach(member -> ids.add(member.memberId()));
        } else if (response instanceof ConsumerGroupHeartbeatResponseData beat) {
            ids.add(beat.memberId());
        }
        return ids;
    }

    /** Adds the fields of an answer to its event. */
    void print(Object response, ObjectNode event) {
        if (response instanceof JoinGroupResponseData join) {
            join(join, event);
        } else if (response instanceof SyncGroupResponseData sync) {
            error(sync.errorCode(), event)
                .put("protocol_type", sync.protocolType())
                .put("protocol", sync.protocolName())
                .put("assignment", base64(sync.assignment()));
        } else if (response instanceof HeartbeatResponseData heartbeat) {
            error(heartbeat.errorCode(), event);
        } else if (response instanceof ConsumerGroupHeartbeatResponseData beat) {
            consumerHeartbeat(beat, event);
        } else if (response instanceof LeaveGroupResponseData leave) {
            leave(leave, event);
        } else if (response instanceof OffsetCommitResponseData commit) {
            ArrayNode partitions = event.putArray("partitions");
            commit.topics().forEach(topic -> topic.partitions().forEach(partition -> partitions.addArray()
                .add(topic.name()).add(partition.partitionIndex()).add(errorName(partition.errorCode()))));
        } else if (response instanceof OffsetFetchResponseGroup fetch) {
            ArrayNode partitions = error(fetch.errorCode(), event).putArray("partitions");
            fetch.topics().forEach(topic -> topic.partitions().forEach(partition -> partitions.addArray()
                .add(topic.name()).add(partition.partitionIndex()).add(partition.committedOffset())
                .add(errorName(partition.errorCode()))));
        } else if (response instanceof DescribedGroup group) {
            describe(group, event);
        } else {
            throw new IllegalArgumentException("no way to print " + response);
        }
    }

    private void join(JoinGroupResponseData join, ObjectNode event) {
        error(join.errorCode(), event)
            .put("generation", join.generationId())
            .put("member", names.name(join.memberId()))
            .put("leader", names.name(join.leader()))
            .put("protocol_type", join.protocolType())
            .put("protocol", join.protocolName())
            .put("skip_assignment", join.skipAssignment());
        Map<String, ArrayNode> sorted = new TreeMap<>(names.order);
        for (JoinGroupResponseMember member : join.members()) {
            String name = names.name(member.memberId());
            sorted.put(name, NODES.arrayNode().add(name).add(member.groupInstanceId()).add(base64(member.metadata())));
        }
        event.putArray("members").addAll(sorted.values());
        ArrayNode order = event.putArray("order");
        join.members().forEach(member -> order.add(names.name(member.memberId())));
    }

    private void consumerHeartbeat(ConsumerGroupHeartbeatResponseData beat, ObjectNode event) {
        error(beat.errorCode(), event)
            .put("member", names.name(beat.memberId()))
            .put("epoch", beat.memberEpoch())
            .put("heartbeat_ms", beat.heartbeatIntervalMs());
        if (beat.assignment() == null) {
            event.putNull("assignment");
            return;
        }
        Map<Uuid, Collection<Integer>> assigned = new HashMap<>();
        beat.assignment().topicPartitions().forEach(topic -> assigned.put(topic.topicId(), topic.partitions()));
        event.set("assignment", partitions(assigned));
    }

    /** Sorted by name and number. */
    ObjectNode partitions(Map<Uuid, ? extends Collection<Integer>> partitions) {
        Map<String, ArrayNode> sorted = new TreeMap<>();
        partitions.forEach((topic, numbers) -> {
            ArrayNode listed = NODES.arrayNode();
            numbers.stream().sorted().forEach(listed::add);
            sorted.put(topics.name(topic), listed);
        });
        ObjectNode printed = NODES.objectNode();
        printed.setAll(sorted);
        return printed;
    }

    private void leave(LeaveGroupResponseData leave, ObjectNode event) {
        ArrayNode members = error(leave.errorCode(), event).putArray("members");
        leave.members().forEach(member -> members.addArray()
            .add(names.name(member.memberId())).add(member.groupInstanceId()).add(errorName(member.errorCode())));
    }

    private void describe(DescribedGroup group, ObjectNode event) {
        error(group.errorCode(), event)
            .put("state", group.groupState())
            .put("protocol_type", group.protocolType())
            .put("protocol", group.protocolData());
        Map<String, ArrayNode> sorted = new TreeMap<>(names.order);
        for (DescribedGroupMember member : group.members()) {
            String name = names.name(member.memberId());
            sorted.put(name, NODES.arrayNode().add(name).add(member.groupInstanceId()).add(member.clientId())
                .add(base64(member.memberMetadata())).add(base64(member.memberAssignment())));
        }
        event.putArray("members").addAll(sorted.values());
    }

    /** Names in their order. */
    ArrayNode sorted(Collection<String> ids) {
        ArrayNode array = NODES.arrayNode();
        ids.stream().map(names::name).sorted(names.order).forEach(array::add);
        return array;
    }

    static ObjectNode error(short code, ObjectNode event) {
        return event.put("error", errorName(code));
    }

    private static String errorName(short code) {
        return Errors.forCode(code).name();
    }

    private static String base64(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
