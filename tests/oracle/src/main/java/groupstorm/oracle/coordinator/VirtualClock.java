package groupstorm.oracle.coordinator;

import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** Time that stands still until it is moved. Kafka takes 0 for "never", so a script's first moment is later. */
public final class VirtualClock implements Time {

    private static final long START_MS = 1_000_000_000;

    private long nowMs = START_MS;

    @Override
    public long milliseconds() {
        return nowMs;
    }

    /** The time since the script began. */
    public long elapsedMs() {
        return nowMs - START_MS;
    }

    @Override
    public long nanoseconds() {
        return TimeUnit.MILLISECONDS.toNanos(nowMs);
    }

    public void moveTo(long toMs) {
        if (toMs < nowMs) {
            throw new IllegalArgumentException("from " + nowMs + " ms back to " + toMs);
        }
        nowMs = toMs;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException("nothing may sleep in virtual time");
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing may wait in virtual time");
    }
}
