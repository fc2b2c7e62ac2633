package groupstorm.oracle.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentDoor;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/**
 * How long Kafka's assignors take: {"case": ..., "warmup_seconds": 3, "runs": 5}, answered with the least CPU
 * time of the calling thread in milliseconds, without reading the case.
 */
public final class StreamsSpeed {

    private static final int WARMUP_RUNS_MIN = 3;

    private StreamsSpeed() {
    }

    public static JsonNode answer(JsonNode request) {
        var asked = new StreamsCase(request.get("case"));
        double seconds = request.path("warmup_seconds").asDouble(3);
        long end = System.nanoTime() + (long) (seconds * 1e9);
        for (int run = 0; run < WARMUP_RUNS_MIN || System.nanoTime() < end; run++) {
            if (once(asked).millis() * WARMUP_RUNS_MIN > seconds * 10_000) {
                break; // it takes so long that there is nothing left to warm up
            }
        }
        Run best = once(asked);
        for (int run = 1; run < request.path("runs").asInt(5); run++) {
            Run next = once(asked);
            best = next.millis() < best.millis() ? next : best;
        }
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        return answer.put("cpu_ms", best.millis()).put("cost", best.cost());
    }

    private record Run(double millis, long cost) {
    }

    private static Run once(StreamsCase asked) {
        Map<ProcessId, ClientState> states = asked.states();
        RackAwareTaskAssignor racks = asked.rackAware(asked.configs);
        racks.canEnableRackAwareAssignor();
        String name = asked.question.get("assignor").textValue();
        asked.give(states);
        var sorted = new TreeMap<>(states);
        var tasks = new TreeSet<>(asked.all());
        var bean = ManagementFactory.getThreadMXBean();
        long start = bean.getCurrentThreadCpuTime();
        long cost = 0;
        if (name.equals("optimize-active")) {
            cost = racks.optimizeActiveTasks(tasks, sorted,
                asked.configs.rackAwareTrafficCost().orElse(10), asked.configs.rackAwareNonOverlapCost().orElse(1));
        } else {
            AssignmentDoor.assignor(name).assign(states, asked.all(), asked.stateful, racks, asked.configs);
        }
        return new Run((bean.getCurrentThreadCpuTime() - start) / 1e6, cost);
    }
}
