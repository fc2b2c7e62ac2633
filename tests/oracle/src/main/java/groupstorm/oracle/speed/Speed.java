package groupstorm.oracle.speed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;

/**
 * Times Kafka's leader, one request at a time.
 *
 * <p>{@code {"do": "load", "assignor": NAME, "round": FILE}} reads a round; {@code {"do": "run"}} assigns it once
 * and tells {@code cpu_ms}; {@code {"do": "digest"}} tells the SHA-256 of that answer; {@code {"do": "sublist",
 * "members": N, "partitions": P}} times document 000's two loops.
 */
public final class Speed {

    private final Stopwatch stopwatch = new Stopwatch();
    private Leader leader;

    public JsonNode answer(JsonNode request) throws Exception {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        switch (request.required("do").asText()) {
            case "load" -> {
                Round round = Round.read(Path.of(request.required("round").asText()));
                leader = new Leader(request.required("assignor").asText(), round);
                answer.put("members", round.members().size());
            }
            case "run" -> answer.put("cpu_ms", stopwatch.cpuMillis(leader::assign));
            case "digest" -> answer.put("sha256", leader.digest());
            case "sublist" -> {
                var loops = new OwnedLoops(request.required("members").asInt(), request.required("partitions").asInt());
                answer.put("one_by_one_ms", stopwatch.cpuMillis(loops::oneByOne));
                answer.put("sublist_ms", stopwatch.cpuMillis(loops::subLists));
            }
            default -> throw new IllegalArgumentException("what to do? " + request);
        }
        return answer;
    }
}
