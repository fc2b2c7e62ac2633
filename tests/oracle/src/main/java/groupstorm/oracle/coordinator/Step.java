package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;

/** Typed access to a step's fields: a missing one has its default, null is null, a wrong one is an InvalidStep. */
record Step(JsonNode json) {

    String op() {
        return json.path("op").asText("");
    }

    boolean has(String field) {
        return json.has(field);
    }

    JsonNode value(String field) {
        return json.path(field);
    }

    String text(String field, String missing) {
        return json.has(field) ? text(field, json.get(field)) : missing;
    }

    static String text(String field, JsonNode value) {
        String text = textOrNull(field, value);
        if (text == null) {
            throw new InvalidStep(field + ": null is no text");
        }
        return text;
    }

    String optionalText(String field, String missing) {
        return json.has(field) ? textOrNull(field, json.get(field)) : missing;
    }

    static String textOrNull(String field, JsonNode value) {
        if (value.isNull()) {
            return null;
        }
        if (!value.isTextual()) {
            throw new InvalidStep(field + ": " + value + " is neither text nor null");
        }
        return value.textValue();
    }

    int int32(String field, int missing) {
        return json.has(field) ? int32(field, json.get(field)) : missing;
    }

    static int int32(String field, JsonNode value) {
        if (!value.isIntegralNumber() || !value.canConvertToInt()) {
            throw new InvalidStep(field + ": " + value + " is no whole number of 32 bits");
        }
        return value.intValue();
    }

    static long int64(String field, JsonNode value) {
        if (!value.isIntegralNumber() || !value.canConvertToLong()) {
            throw new InvalidStep(field + ": " + value + " is no whole number of 64 bits");
        }
        return value.longValue();
    }

    int version(int missing, int lowest, int highest) {
        int version = int32("version", missing);
        if (version < lowest || version > highest) {
            throw new InvalidStep("version: " + version + " is not between " + lowest + " and " + highest);
        }
        return version;
    }

    /** An object's entries; a missing one is empty. */
    Iterable<Map.Entry<String, JsonNode>> entries(String field) {
        return entries(field, json.path(field));
    }

    static Iterable<Map.Entry<String, JsonNode>> entries(String field, JsonNode value) {
        if (!value.isMissingNode() && !value.isObject()) {
            throw new InvalidStep(field + ": " + value + " is no object");
        }
        return value.properties();
    }

    static Iterator<JsonNode> elements(String field, JsonNode value) {
        if (!value.isArray()) {
            throw new InvalidStep(field + ": " + value + " is no list");
        }
        return value.elements();
    }

    static byte[] base64(String field, JsonNode value) {
        try {
            return Base64.getDecoder().decode(value.isTextual() ? value.textValue() : "?");
        } catch (IllegalArgumentException problem) {
            throw new InvalidStep(field + ": " + value + " is no base64 text");
        }
    }

    /** A partition's number as an object's key. */
    static int partition(String field, String key) {
        try {
            return Integer.parseUnsignedInt(key);
        } catch (NumberFormatException problem) {
            throw new InvalidStep(field + ": " + key + " is no partition");
        }
    }
}
