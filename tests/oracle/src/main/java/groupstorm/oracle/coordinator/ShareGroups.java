package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData.DescribedGroup;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.Release;
import org.apache.kafka.coordinator.group.VirtualCoordinator;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;

/** Steps about share groups (KIP-932) become requests, and answers and groups become the script's events. */
record ShareGroups(Clients clients, Names names, Printing printing) {

    private static final JsonNode OWN = TextNode.valueOf("$");

    Call heartbeat(Step step, String label) {
        JsonNode epoch = step.has("epoch") ? step.value("epoch") : OWN;
        var request = new ShareGroupHeartbeatRequestData()
            .setGroupId(step.text("group", "g"))
            .setMemberId(clients.member(label, step.has("member") ? step.value("member") : OWN))
            .setMemberEpoch(clients.number("epoch", label, epoch, client -> client.epoch))
            .setRackId(step.optionalText("rack", null))
            .setSubscribedTopicNames(ConsumerHeartbeats.topics(step.value("topics")));
        Context context = Requests.context(ApiKeys.SHARE_GROUP_HEARTBEAT, step, 1);
        return new Call("shb", request.memberId(), false,
            coordinator -> coordinator.shareGroupHeartbeat(context, request));
    }

    static Call describe(Step step) {
        String group = step.text("group", "g");
        Context context = Requests.context(ApiKeys.SHARE_GROUP_DESCRIBE, step, 1);
        return new Call("describe_share", null, false, coordinator -> coordinator
            .shareGroupDescribe(context, List.of(group)).thenApply(described -> described.get(0)));
    }

    static Call delete(Step step) {
        List<String> groups = new ArrayList<>();
        if (step.has("groups")) {
            Step.elements("groups", step.value("groups"))
                .forEachRemaining(group -> groups.add(Step.text("groups", group)));
        } else {
            groups.add(step.text("group", "g"));
        }
        Context context = Requests.context(ApiKeys.DELETE_GROUPS, step, 2);
        return new Call("delete_groups", null, false, coordinator -> coordinator
            .deleteGroups(context, groups, Release.NO_CACHING)
            .thenApply(results -> new DeleteGroupsResponseData().setResults(results)));
    }

    /** Adds the fields of an answer to its event; whether it is one of these requests'. */
    boolean print(Object response, ObjectNode event) {
        if (response instanceof ShareGroupHeartbeatResponseData beat) {
            print(beat, event);
        } else if (response instanceof DescribedGroup group) {
            print(group, event);
        } else if (response instanceof DeleteGroupsResponseData deleted) {
            print(deleted, event);
        } else {
            return false;
        }
        return true;
    }

    void print(InitializeShareGroupStateParameters asked, ObjectNode event, Topics topics) {
        var group = asked.groupTopicPartitionData();
        event.put("group", group.groupId())
            .put("epoch", group.topicsData().get(0).partitions().get(0).stateEpoch());
        ObjectNode starts = event.putObject("topics");
        group.topicsData().forEach(topic -> {
            ObjectNode partitions = starts.putObject(topics.name(topic.topicId()));
            topic.partitions().forEach(one -> partitions.put(Integer.toString(one.partition()), one.startOffset()));
        });
    }

    private void print(ShareGroupHeartbeatResponseData beat, ObjectNode event) {
        Printing.error(beat.errorCode(), event)
            .put("member", names.name(beat.memberId()))
            .put("epoch", beat.memberEpoch())
            .put("heartbeat_ms", beat.heartbeatIntervalMs());
        if (beat.assignment() == null) {
            event.putNull("assignment");
            return;
        }
        Map<Uuid, Collection<Integer>> assigned = new HashMap<>();
        beat.assignment().topicPartitions().forEach(topic -> assigned.put(topic.topicId(), topic.partitions()));
        event.set("assignment", printing.partitions(assigned));
    }

    private void print(DescribedGroup group, ObjectNode event) {
        Printing.error(group.errorCode(), event)
            .put("state", group.groupState())
            .put("epoch", group.groupEpoch())
            .put("assignment_epoch", group.assignmentEpoch())
            .put("assignor", group.assignorName());
        Map<String, ObjectNode> sorted = new TreeMap<>(names.order);
        for (var member : group.members()) {
            String name = names.name(member.memberId());
            ObjectNode printed = JsonNodeFactory.instance.objectNode()
                .put("member", name)
                .put("epoch", member.memberEpoch())
                .put("rack", member.rackId())
                .put("client_id", member.clientId());
            topics(member.subscribedTopicNames(), printed);
            Map<Uuid, Collection<Integer>> assigned = new HashMap<>();
            member.assignment().topicPartitions().forEach(topic -> assigned.put(topic.topicId(), topic.partitions()));
            printed.set("assigned", printing.partitions(assigned));
            sorted.put(name, printed);
        }
        event.putArray("members").addAll(sorted.values());
    }

    private static void print(DeleteGroupsResponseData deleted, ObjectNode event) {
        Map<String, String> sorted = new TreeMap<>();
        deleted.results().forEach(result -> sorted.put(result.groupId(), Errors.forCode(result.errorCode()).name()));
        ArrayNode groups = event.putArray("groups");
        sorted.forEach((group, error) -> groups.addArray().add(group).add(error));
    }

    void print(ShareGroup group, VirtualCoordinator coordinator, ObjectNode state) {
        state.put("type", "share")
            .put("state", group.stateAsString())
            .put("epoch", group.groupEpoch())
            .put("assignment_epoch", group.assignmentEpoch());
        state.set("initializing", printing.partitions(coordinator.initializing(group.groupId())));
        state.set("initialized", printing.partitions(coordinator.initialized(group.groupId())));
        Map<String, ShareGroupMember> sorted = new TreeMap<>(names.order);
        group.members().forEach((id, member) -> sorted.put(names.name(id), member));
        ArrayNode members = state.putArray("members");
        sorted.forEach((name, member) -> {
            ObjectNode printed = members.addObject()
                .put("member", name)
                .put("epoch", member.memberEpoch())
                .put("previous_epoch", member.previousMemberEpoch())
                .put("state", member.state().name());
            if (member.rackId() != null) {
                printed.put("rack", member.rackId());
            }
            topics(member.subscribedTopicNames(), printed);
            printed.set("assigned", printing.partitions(withPartitions(member.assignedPartitions())));
            Map<Uuid, Set<Integer>> target = group.targetAssignment(member.memberId()).partitions();
            printed.set("target", printing.partitions(withPartitions(target)));
        });
    }

    private static void topics(Collection<String> names, ObjectNode printed) {
        ArrayNode topics = printed.putArray("topics");
        names.stream().sorted().forEach(topics::add);
    }

    private static Map<Uuid, Set<Integer>> withPartitions(Map<Uuid, Set<Integer>> all) {
        Map<Uuid, Set<Integer>> some = new TreeMap<>();
        all.forEach((topic, numbers) -> {
            if (!numbers.isEmpty()) {
                some.put(topic, numbers);
            }
        });
        return some;
    }
}
