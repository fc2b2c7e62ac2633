package groupstorm.oracle.assignors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;

/** The values of a case; null is as good as absent. */
final class Fields {

    private Fields() {
    }

    static boolean has(JsonNode object, String name) {
        return object.hasNonNull(name);
    }

    static Optional<String> text(JsonNode object, String name) {
        return has(object, name) ? Optional.of(object.get(name).textValue()) : Optional.empty();
    }

    static int number(JsonNode object, String name, int absent) {
        return has(object, name) ? object.get(name).intValue() : absent;
    }

    static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(one -> texts.add(one.textValue()));
        return texts;
    }

    static List<TopicPartition> partitions(JsonNode object, String name) {
        List<TopicPartition> partitions = new ArrayList<>();
        if (has(object, name)) {
            object.get(name).forEach(pair ->
                partitions.add(new TopicPartition(pair.get(0).textValue(), pair.get(1).intValue())));
        }
        return partitions;
    }

    static ArrayNode list(Collection<TopicPartition> partitions) {
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        partitions.forEach(partition -> list.addArray().add(partition.topic()).add(partition.partition()));
        return list;
    }

    /** What a case is answered with that Kafka refuses. */
    static ObjectNode refusal(JsonNode id, Throwable thrown) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.set("id", id);
        return answer.put("error", thrown.getClass().getSimpleName()).put("message", thrown.getMessage());
    }
}
