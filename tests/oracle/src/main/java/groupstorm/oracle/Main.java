package groupstorm.oracle;

import groupstorm.oracle.assignors.ConsumerAssignors;
import groupstorm.oracle.assignors.ReleasedAssignors;
import groupstorm.oracle.assignors.ServerAssignors;
import groupstorm.oracle.coordinator.Script;
import groupstorm.oracle.member.Console;
import groupstorm.oracle.speed.Speed;
import groupstorm.oracle.streams.StreamsAssignors;
import groupstorm.oracle.streams.StreamsSpeed;
import groupstorm.oracle.streams.StreamsUserData;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.internals.ScriptedMember;

/** The oracle's entry: the first argument names what Kafka is asked about. */
public final class Main {

    /** A command gets the arguments behind its name. */
    interface Command {
        void run(String[] arguments) throws Exception;
    }

    private static final Map<String, Command> COMMANDS = new TreeMap<>(Map.of(
        "consumer", arguments -> JsonLines.serve(ConsumerAssignors::answer),
        "consumer-member", arguments -> JsonLines.serve(ScriptedMember::answer),
        "coordinator", arguments -> JsonLines.serve(Script::answer),
        "member", arguments -> Console.run(),
        "released", arguments -> JsonLines.serve(ReleasedAssignors::answer),
        "server", arguments -> JsonLines.serve(ServerAssignors::answer),
        "speed", arguments -> JsonLines.serve(new Speed()::answer),
        "streams", arguments -> JsonLines.serve(StreamsAssignors::answer),
        "streams-speed", arguments -> JsonLines.serve(StreamsSpeed::answer),
        "streams-user-data", arguments -> JsonLines.serve(StreamsUserData::answer)
    ));

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        Command command = arguments.length == 0 ? null : COMMANDS.get(arguments[0]);
        if (command == null) {
            System.err.println("usage: Main " + String.join("|", COMMANDS.keySet()));
            System.exit(2);
        }
        command.run(Arrays.copyOfRange(arguments, 1, arguments.length));
    }
}
