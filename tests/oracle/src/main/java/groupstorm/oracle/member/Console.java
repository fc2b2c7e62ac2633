package groupstorm.oracle.member;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Consumers on command: JSON lines in, JSON lines out, until the input ends.
 *
 * <p>In: {"command": "start", "config": {...}, "topics": [...]}, then leave_poll, enter_poll, close.
 * Out: what the consumer's application saw. There is one consumer at a time; when it has ended the next may start.
 */
public final class Console {

    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private Member member;

    private Console() {
    }

    public static void run() throws IOException, InterruptedException {
        Console console = new Console();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            console.obey(JSON.readTree(line));
        }
        if (console.member != null) {
            console.member.kill();
        }
    }

    private void obey(JsonNode order) throws InterruptedException {
        String command = order.get("command").asText();
        if (command.equals("start")) {
            member = new Member(order, this::tell);
            member.start();
            return;
        }
        switch (command) {
            case "leave_poll" -> member.leavePoll();
            case "enter_poll" -> member.enterPoll();
            case "close" -> member.close();
            default -> throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private synchronized void tell(Map<String, Object> event) {
        try {
            out.println(JSON.writeValueAsString(event));
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
