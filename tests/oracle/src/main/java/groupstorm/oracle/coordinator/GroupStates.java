package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.VirtualCoordinator;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;

/** The coordinator's groups as the script's state. */
record GroupStates(
    Names names,
    Printing printing,
    ShareGroups shareGroups,
    StreamsGroups streamsGroups,
    VirtualCoordinator coordinator
) {

    private static final Field PENDING = field("pendingJoinMembers");
    private static final Field STATIC = field("staticMembers");

    /** The member ids that the state shows. */
    static List<String> ids(Collection<? extends Group> groups) {
        List<String> ids = new ArrayList<>();
        for (Group group : groups) {
            if (group instanceof ClassicGroup classic) {
                ids.addAll(classic.allMemberIds());
                ids.addAll(pending(classic));
                ids.addAll(instances(classic).values());
                ids.add(classic.leaderOrNull());
            } else if (group instanceof ConsumerGroup consumer) {
                ids.addAll(consumer.members().keySet());
            }
        }
        return ids;
    }

    ObjectNode print(Collection<? extends Group> groups) {
        ObjectNode state = JsonNodeFactory.instance.objectNode();
        for (Group group : groups) {
            if (group instanceof ClassicGroup classic) {
                print(classic, state.putObject(group.groupId()));
            } else if (group instanceof ConsumerGroup consumer) {
                print(consumer, state.putObject(group.groupId()));
            } else if (group instanceof ShareGroup share) {
                shareGroups.print(share, coordinator, state.putObject(group.groupId()));
            } else if (!streamsGroups.print(group, state.putObject(group.groupId()))) {
                throw new IllegalStateException("no way to print " + group);
            }
        }
        return state;
    }

    private void print(ClassicGroup group, ObjectNode state) {
        state.put("type", "classic")
            .put("state", group.currentState().toString())
            .put("generation", group.generationId())
            .put("protocol_type", group.protocolType().orElse(null))
            .put("protocol", group.protocolName().orElse(null))
            .put("leader", names.name(group.leaderOrNull()));
        state.set("members", members(group, __ -> true));
        state.set("joining", members(group, ClassicGroupMember::isAwaitingJoin));
        state.set("syncing", members(group, ClassicGroupMember::isAwaitingSync));
        state.set("pending", printing.sorted(pending(group)));
        ObjectNode instances = state.putObject("static");
        new TreeMap<>(instances(group)).forEach((instance, id) -> instances.put(instance, names.name(id)));
    }

    private void print(ConsumerGroup group, ObjectNode state) {
        state.put("type", "consumer")
            .put("state", group.stateAsString())
            .put("epoch", group.groupEpoch())
            .put("assignment_epoch", group.assignmentEpoch());
        Map<String, ConsumerGroupMember> sorted = new TreeMap<>(names.order);
        group.members().forEach((id, member) -> sorted.put(names.name(id), member));
        ArrayNode members = state.putArray("members");
        sorted.forEach((name, member) -> print(group, name, member, members.addObject()));
    }

    private void print(ConsumerGroup group, String name, ConsumerGroupMember member, ObjectNode printed) {
        printed.put("member", name)
            .put("epoch", member.memberEpoch())
            .put("previous_epoch", member.previousMemberEpoch())
            .put("state", member.state().name());
        if (member.instanceId() != null) {
            printed.put("instance", member.instanceId());
        }
        if (member.useClassicProtocol()) {
            printed.put("classic", true);
        }
        printed.set("assigned", printing.partitions(numbers(member.assignedPartitions())));
        printed.set("revoking", printing.partitions(numbers(member.partitionsPendingRevocation())));
        printed.set("target", printing.partitions(group.targetAssignment(member.memberId()).partitions()));
    }

    private static Map<Uuid, Set<Integer>> numbers(Map<Uuid, Map<Integer, Integer>> partitions) {
        Map<Uuid, Set<Integer>> numbers = new TreeMap<>();
        partitions.forEach((topic, epochs) -> numbers.put(topic, epochs.keySet()));
        return numbers;
    }

    private ArrayNode members(ClassicGroup group, Predicate<ClassicGroupMember> which) {
        return printing.sorted(group.allMembers().stream().filter(which).map(ClassicGroupMember::memberId).toList());
    }

    @SuppressWarnings("unchecked")
    private static Set<String> pending(ClassicGroup group) {
        return (Set<String>) read(PENDING, group);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, String> instances(ClassicGroup group) {
        return (Map<String, String>) read(STATIC, group);
    }

    /** What a group keeps to itself: read, never written. */
    private static Field field(String name) {
        try {
            Field field = ClassicGroup.class.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException changed) {
            throw new IllegalStateException("Kafka's ClassicGroup has no " + name + " any more", changed);
        }
    }

    private static Object read(Field field, ClassicGroup group) {
        try {
            return field.get(group);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
