package groupstorm.oracle.coordinator;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.streams.StreamsGroupHeartbeatResult;

/** What a client label remembers of the answers to it. */
final class Client {

    private static final List<Map<String, List<Integer>>> NO_TASKS = List.of(Map.of(), Map.of(), Map.of());

    String member = "";
    int generation = -1;
    String protocolType;
    String protocol;
    boolean leads;
    boolean skips;
    List<String> members = List.of();
    byte[] assignment;
    int epoch;
    /** What the last assignment of a consumer group said, and the last one before it that differed. */
    Map<Uuid, List<Integer>> owned = Map.of();
    Map<Uuid, List<Integer>> ownedBefore = Map.of();
    /** The same of a streams group, by subtopology: active, standby and warm-up tasks. */
    List<Map<String, List<Integer>>> tasks = NO_TASKS;
    List<Map<String, List<Integer>>> tasksBefore = NO_TASKS;
    int endpointEpoch = -1;
    /** The internal topics that the last answer named, with their partitions. */
    Map<String, Integer> toCreate = Map.of();
    /** "join:NONE", "sync:PENDING"; null before the first. */
    String last;

    /** Joins and syncs may be parked: their answer is pending from now on. */
    void sent(Call call) {
        if (call.mayBeParked()) {
            last = call.kind() + ":PENDING";
        }
        if (call.isModernHeartbeat() && !call.memberId().isEmpty()) {
            member = call.memberId();
        }
    }

    void answered(Call call, Object response) {
        if (response instanceof JoinGroupResponseData join) {
            joined(join);
            refused(call, join.errorCode());
        } else if (response instanceof SyncGroupResponseData sync) {
            if (sync.errorCode() == Errors.NONE.code()) {
                assignment = sync.assignment();
            }
            refused(call, sync.errorCode());
        } else if (response instanceof HeartbeatResponseData heartbeat) {
            refused(call, heartbeat.errorCode());
        } else if (response instanceof ConsumerGroupHeartbeatResponseData beat) {
            beaten(call, beat);
        } else if (response instanceof ShareGroupHeartbeatResponseData beat) {
            Errors error = beaten(call, beat.errorCode());
            if (isOut(error, beat.memberEpoch())) {
                epoch = 0;
            } else if (error == Errors.NONE) {
                epoch = beat.memberEpoch();
            }
        } else if (response instanceof StreamsGroupHeartbeatResult beat) {
            beaten(call, beat);
        } else if (response instanceof LeaveGroupResponseData leave && call.ownLeave()) {
            if (leave.members().stream().allMatch(left -> left.errorCode() == Errors.NONE.code())) {
                member = "";
            }
        }
    }

    private Errors beaten(Call call, short errorCode) {
        Errors error = Errors.forCode(errorCode);
        last = call.kind() + ":" + error.name();
        return error;
    }

    private static boolean isOut(Errors error, int epoch) {
        return error == Errors.FENCED_MEMBER_EPOCH || error == Errors.UNKNOWN_MEMBER_ID
            || error == Errors.NONE && epoch < 0;
    }

    private void beaten(Call call, ConsumerGroupHeartbeatResponseData beat) {
        Errors error = beaten(call, beat.errorCode());
        if (beat.memberId() != null && !beat.memberId().isEmpty()) {
            member = beat.memberId();
        }
        if (isOut(error, beat.memberEpoch())) {
            epoch = 0;
            owned = Map.of();
        } else if (error == Errors.NONE) {
            epoch = beat.memberEpoch();
            if (beat.assignment() != null) {
                assigned(beat.assignment());
            }
        }
    }

    private void beaten(Call call, StreamsGroupHeartbeatResult result) {
        toCreate = new TreeMap<>();
        result.creatableTopics().forEach((name, topic) -> toCreate.put(name, topic.numPartitions()));
        var beat = result.data();
        Errors error = beaten(call, beat.errorCode());
        if (isOut(error, beat.memberEpoch())) {
            epoch = 0;
            tasks = NO_TASKS;
        } else if (error == Errors.NONE) {
            epoch = beat.memberEpoch();
            endpointEpoch = beat.endpointInformationEpoch();
            if (beat.activeTasks() != null && beat.standbyTasks() != null && beat.warmupTasks() != null) {
                List<Map<String, List<Integer>>> now = Stream
                    .of(beat.activeTasks(), beat.standbyTasks(), beat.warmupTasks()).map(Client::numbers).toList();
                if (!now.equals(tasks)) {
                    tasksBefore = tasks;
                    tasks = now;
                }
            }
        }
    }

    private static Map<String, List<Integer>> numbers(List<StreamsGroupHeartbeatResponseData.TaskIds> tasks) {
        Map<String, List<Integer>> numbers = new TreeMap<>();
        tasks.forEach(one -> numbers.put(one.subtopologyId(), one.partitions().stream().sorted().toList()));
        return numbers;
    }

    private void assigned(ConsumerGroupHeartbeatResponseData.Assignment assignment) {
        Map<Uuid, List<Integer>> now = new TreeMap<>();
        assignment.topicPartitions().forEach(
            topic -> now.put(topic.topicId(), topic.partitions().stream().sorted().toList()));
        if (!now.equals(owned)) {
            ownedBefore = owned;
            owned = now;
        }
    }

    private void joined(JoinGroupResponseData join) {
        if (!join.memberId().isEmpty()) {
            member = join.memberId();
        }
        if (join.errorCode() == Errors.NONE.code()) {
            generation = join.generationId();
            protocolType = join.protocolType();
            protocol = join.protocolName();
            leads = join.leader().equals(join.memberId());
            skips = join.skipAssignment();
            members = join.members().stream().map(JoinGroupResponseData.JoinGroupResponseMember::memberId).toList();
        }
    }

    /** The last answer's error; UNKNOWN_MEMBER_ID drops the id, if the request used the one that is known now. */
    private void refused(Call call, short errorCode) {
        last = call.kind() + ":" + Errors.forCode(errorCode).name();
        if (errorCode == Errors.UNKNOWN_MEMBER_ID.code() && member.equals(call.memberId())) {
            member = "";
        }
    }
}
