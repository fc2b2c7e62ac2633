package groupstorm.oracle.speed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Times Kafka's leader, one request at a time.
 *
 * <p>{@code {"do": "clear"}} forgets all rounds; {@code {"do": "load", "round": NAME, "assignor": NAME, "file":
 * FILE}} reads one; {@code {"do": "run", "round": NAME}} assigns it once and tells {@code cpu_ms}; {@code {"do":
 * "digest", "round": NAME}} tells the SHA-256 of that answer; {@code {"do": "sublist", "members": N,
 * "partitions": P}} times the two loops of KAFKA-12464.
 */
public final class Speed {

    private final Stopwatch stopwatch = new Stopwatch();
    private final Clusters clusters = new Clusters();
    private final Map<String, Leader> leaders = new HashMap<>();

    public JsonNode answer(JsonNode request) throws Exception {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        switch (request.required("do").asText()) {
            case "clear" -> leaders.clear();
            case "load" -> {
                Round round = Round.read(Path.of(request.required("file").asText()));
                String assignor = request.required("assignor").asText();
                leaders.put(name(request), new Leader(assignor, clusters.of(round.topics()), round.members()));
            }
            case "run" -> answer.put("cpu_ms", stopwatch.cpuMillis(leaders.get(name(request))::assign));
            case "digest" -> answer.put("sha256", leaders.get(name(request)).digest());
            case "sublist" -> {
                var loops = new OwnedLoops(request.required("members").asInt(), request.required("partitions").asInt());
                answer.put("one_by_one_ms", stopwatch.cpuMillis(loops::oneByOne));
                answer.put("sublist_ms", stopwatch.cpuMillis(loops::subLists));
            }
            default -> throw new IllegalArgumentException("what to do? " + request);
        }
        return answer;
    }

    private static String name(JsonNode request) {
        return request.required("round").asText();
    }
}
