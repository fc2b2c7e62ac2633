package groupstorm.oracle;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** One JSON object a line in, one out, in order, so that one process can answer for as long as it is asked. */
public final class JsonLines {

    /** Answers one case; whatever it throws is a fault of the oracle and ends the process. */
    public interface Answerer {
        JsonNode answer(JsonNode request) throws Exception;
    }

    private static final JsonMapper JSON = new JsonMapper();

    private JsonLines() {
    }

    /** Answers standard input on standard output until it ends. Whatever else prints there goes to standard error. */
    public static void serve(Answerer answerer) throws Exception {
        OutputStream output = new FileOutputStream(FileDescriptor.out);
        System.setOut(new PrintStream(System.err, true, StandardCharsets.UTF_8));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (!line.isBlank()) {
                write(output, answerer.answer(read(line)));
            }
        }
    }

    private static JsonNode read(String line) throws IOException {
        try {
            return JSON.readTree(line);
        } catch (JsonProcessingException problem) {
            throw new IOException("a line that is not JSON: " + line, problem);
        }
    }

    private static void write(OutputStream output, JsonNode answer) throws IOException {
        output.write((JSON.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8));
        output.flush();
    }
}
