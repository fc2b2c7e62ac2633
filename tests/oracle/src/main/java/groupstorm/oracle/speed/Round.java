package groupstorm.oracle.speed;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a leader is asked: topics with their number of partitions, and every member's subscription bytes. */
record Round(Map<String, Integer> topics, Map<String, byte[]> members) {

    /** All numbers are int32; strings are an int16 length and their bytes. */
    static Round read(Path file) throws IOException {
        try (var input = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), 1 << 16))) {
            Map<String, Integer> topics = new LinkedHashMap<>();
            for (int left = input.readInt(); left > 0; left--) {
                topics.put(input.readUTF(), input.readInt());
            }
            Map<String, byte[]> members = new LinkedHashMap<>();
            for (int left = input.readInt(); left > 0; left--) {
                String member = input.readUTF();
                members.put(member, input.readNBytes(input.readInt()));
            }
            return new Round(topics, members);
        }
    }
}
