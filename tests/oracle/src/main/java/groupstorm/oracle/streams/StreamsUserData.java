package groupstorm.oracle.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/** {"subscription": hex} or {"assignment": hex}: what Kafka reads there, and its own bytes for that. */
public final class StreamsUserData {

    private StreamsUserData() {
    }

    public static JsonNode answer(JsonNode request) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        try {
            if (request.has("subscription")) {
                subscription(answer, ByteBuffer.wrap(HexFormat.of().parseHex(request.get("subscription").textValue())));
            } else {
                assignment(answer, ByteBuffer.wrap(HexFormat.of().parseHex(request.get("assignment").textValue())));
            }
            return answer;
        } catch (RuntimeException thrown) {
            return answer.removeAll().put("error", thrown.getClass().getSimpleName());
        }
    }

    private static void subscription(ObjectNode answer, ByteBuffer bytes) {
        SubscriptionInfo info = SubscriptionInfo.decode(bytes);
        answer.put("version", info.version()).put("latest", info.latestSupportedVersion());
        answer.put("process", info.processId().id().toString()).put("endpoint", info.userEndPoint());
        answer.put("error_code", info.errorCode());
        ObjectNode sums = answer.putObject("offset_sums");
        info.taskOffsetSums().forEach((task, sum) -> sums.put(task.toString(), sum));
        ObjectNode tags = answer.putObject("tags");
        info.clientTags().forEach(tags::put);
        answer.put("bytes", hex(new SubscriptionInfo(info.version(), info.latestSupportedVersion(), info.processId(),
            info.userEndPoint(), info.taskOffsetSums(), (byte) 3, info.errorCode(), info.clientTags()).encode()));
    }

    private static void assignment(ObjectNode answer, ByteBuffer bytes) {
        AssignmentInfo info = AssignmentInfo.decode(bytes);
        answer.put("version", info.version()).put("common", info.commonlySupportedVersion());
        answer.put("error_code", info.errCode()).put("next_rebalance_ms", info.nextRebalanceMs());
        ArrayNode active = answer.putArray("active");
        info.activeTasks().forEach(task -> active.add(task.toString()));
        ObjectNode standby = answer.putObject("standby");
        for (Map.Entry<TaskId, Set<TopicPartition>> entry : info.standbyTasks().entrySet()) {
            standby.set(entry.getKey().toString(), sorted(entry.getValue()));
        }
        answer.set("hosts", hosts(info.partitionsByHost()));
        answer.set("standby_hosts", hosts(info.standbyPartitionByHost()));
        answer.put("bytes", hex(info.encode()));
    }

    private static ObjectNode hosts(Map<HostInfo, Set<TopicPartition>> hosts) {
        ObjectNode told = JsonNodeFactory.instance.objectNode();
        hosts.forEach((host, parts) -> told.set(host.host() + ":" + host.port(), sorted(parts)));
        return told;
    }

    private static ArrayNode sorted(Collection<TopicPartition> partitions) {
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        partitions.stream().map(TopicPartition::toString).sorted().forEach(list::add);
        return list;
    }

    private static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
