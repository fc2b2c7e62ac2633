package groupstorm.oracle.coordinator;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.common.Uuid;

/**
 * Makes {@link UUID#randomUUID} a function of the scenario and of how many it has drawn: the n-th is
 * MD5("id:n") with the bits of a random UUID. Kafka's classes stay as they are: the source of randomness
 * is replaced below them, as a security provider that comes before all others.
 */
public final class DrawnUuids {

    private static final int UUID_BYTES = 16;
    private static final int UUID_CHARACTERS = 36;

    private static String scenario;
    private static int count;
    private static final Map<String, Integer> NUMBERS = new HashMap<>();

    private DrawnUuids() {
    }

    /** Has to run before the first UUID is drawn in this process. */
    static void install() {
        Security.insertProviderAt(new DigestProvider(), 1);
        restart("install");
        if (!UUID.randomUUID().equals(of("install:1"))) {
            throw new IllegalStateException("UUID.randomUUID does not draw from the first security provider");
        }
    }

    /** From here on the ids of this scenario are drawn, from the first. */
    static void restart(String scenarioId) {
        scenario = scenarioId;
        count = 0;
        NUMBERS.clear();
    }

    /** Which draw an id came from, by the UUID at its end, or in Kafka's base64 if it is nothing else; null for an id that the coordinator did not make. */
    static Integer number(String memberId) {
        Integer whole = NUMBERS.get(memberId);
        if (whole != null) {
            return whole;
        }
        int start = memberId.length() - UUID_CHARACTERS;
        return start > 0 && memberId.charAt(start - 1) == '-' ? NUMBERS.get(memberId.substring(start)) : null;
    }

    /** MD5 of the text, with the version and variant bits of a random UUID. */
    static UUID of(String text) {
        ByteBuffer bits = ByteBuffer.wrap(digest(text));
        long high = bits.getLong() & 0xffffffffffff0fffL | 0x4000L;
        long low = bits.getLong() & 0x3fffffffffffffffL | 0x8000000000000000L;
        return new UUID(high, low);
    }

    private static byte[] digest(String text) {
        try {
            return MessageDigest.getInstance("MD5").digest(text.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static byte[] draw(int length) {
        if (length != UUID_BYTES) {
            throw new IllegalStateException(length + " random bytes were drawn: those are no UUID's");
        }
        String source = scenario + ":" + (count + 1);
        UUID drawn = of(source);
        count += 1;
        NUMBERS.put(drawn.toString(), count);
        NUMBERS.put(new Uuid(drawn.getMostSignificantBits(), drawn.getLeastSignificantBits()).toString(), count);
        return digest(source);
    }

    /** Public, as java.security makes it by its class's name. */
    public static final class DigestRandom extends SecureRandomSpi {
        private static final long serialVersionUID = 1;

        @Override
        protected void engineSetSeed(byte[] seed) {
            // what is drawn depends on the scenario alone
        }

        @Override
        protected void engineNextBytes(byte[] bytes) {
            System.arraycopy(draw(bytes.length), 0, bytes, 0, bytes.length);
        }

        @Override
        protected byte[] engineGenerateSeed(int length) {
            return new byte[length];
        }
    }

    private static final class DigestProvider extends Provider {
        private static final long serialVersionUID = 1;

        DigestProvider() {
            super("groupstorm", "1", "UUIDs that depend on the scenario alone");
            putService(new Service(
                this, "SecureRandom", "ScenarioDigest", DigestRandom.class.getName(), null, null));
        }
    }
}
