package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.function.ToIntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** All labels of a scenario, and the variables that steps may use. */
final class Clients {

    private static final Pattern NUMBER = Pattern.compile("\\$(.*?)([+-]\\d+)?", Pattern.DOTALL);

    private final Names names;
    private final Map<String, Client> clients = new HashMap<>();

    Clients(Names names) {
        this.names = names;
    }

    Client get(String label) {
        return clients.computeIfAbsent(label, __ -> new Client());
    }

    /** "$": the client's own id, "$r1": client r1's, "$m3": the id named m3; anything else stands for itself. */
    String member(String label, JsonNode value) {
        if (!value.isTextual()) {
            throw new InvalidStep("member: " + value + " is no text");
        }
        return member(label, value.textValue());
    }

    String member(String label, String text) {
        if (!text.startsWith("$")) {
            return text;
        }
        String other = text.substring(1);
        return Names.isName(other) ? names.id(other) : known(other.isEmpty() ? label : other).member;
    }

    /** "$", "$r1", "$+1", "$r1-1" or a number. */
    int number(String field, String label, JsonNode value, ToIntFunction<Client> read) {
        if (!value.isTextual()) {
            return Step.int32(field, value);
        }
        Matcher matcher = NUMBER.matcher(value.textValue());
        if (!matcher.matches()) {
            throw new InvalidStep(field + ": " + value + " is no number");
        }
        String other = matcher.group(1).isEmpty() ? label : matcher.group(1);
        long added = matcher.group(2) == null ? 0 : Long.parseLong(matcher.group(2));
        long number = read.applyAsInt(known(other)) + added;
        if (number != (int) number) {
            throw new InvalidStep(field + ": " + number + " is no whole number of 32 bits");
        }
        return (int) number;
    }

    private Client known(String label) {
        return clients.getOrDefault(label, new Client());
    }
}
