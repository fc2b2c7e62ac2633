package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import groupstorm.oracle.JsonLines;

/** One scenario of `groupstorm script`, run against Kafka's coordinator. */
public final class Script {

    static {
        DrawnUuids.install();
    }

    private Script() {
    }

    /** Answers scenarios alone: the entry where only the coordinator's classes are of the asked release. */
    public static void main(String[] arguments) throws Exception {
        JsonLines.serve(Script::answer);
    }

    /** {"id", "events", "ids"}, or {"id", "failed"} where Kafka refuses the configuration. */
    public static JsonNode answer(JsonNode scenario) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.set("id", scenario.get("id"));
        DrawnUuids.restart(scenario.get("id").asText());
        try {
            Run run = new Run(scenario.path("config"));
            int index = 0;
            for (JsonNode step : scenario.get("steps")) {
                run.take(index++, new Step(step));
            }
            ArrayNode events = run.finish();
            answer.set("events", events);
            ObjectNode ids = answer.putObject("ids");
            run.ids().forEach(ids::put);
        } catch (ScenarioFailed failed) {
            answer.put("failed", failed.getMessage());
        }
        return answer;
    }
}
