package groupstorm.oracle.coordinator;

import java.util.Comparator;
import java.util.PriorityQueue;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** Kafka's timer in virtual time: of equal deadlines the one that was set first fires first. */
public final class FifoTimer implements Timer {

    private record Waiting(TimerTaskEntry entry, long number) {
        long deadlineMs() {
            return entry.expirationMs;
        }
    }

    private final VirtualClock clock;
    private final PriorityQueue<Waiting> queue = new PriorityQueue<>(
        Comparator.comparingLong(Waiting::deadlineMs).thenComparingLong(Waiting::number));
    private long count = 0;

    public FifoTimer(VirtualClock clock) {
        this.clock = clock;
    }

    @Override
    public void add(TimerTask task) {
        long deadlineMs = clock.milliseconds() + Math.max(task.delayMs, 0);
        queue.add(new Waiting(new TimerTaskEntry(task, deadlineMs), count++));
    }

    /** The earliest deadline, or null where nothing waits. */
    public Long nextDeadlineMs() {
        while (!queue.isEmpty() && queue.peek().entry().cancelled()) {
            queue.remove();
        }
        return queue.isEmpty() ? null : queue.peek().deadlineMs();
    }

    /** Runs the first task that is due; false where none is. */
    public boolean fireOne() {
        Long deadlineMs = nextDeadlineMs();
        if (deadlineMs == null || deadlineMs > clock.milliseconds()) {
            return false;
        }
        queue.remove().entry().timerTask.run();
        return true;
    }

    @Override
    public boolean advanceClock(long timeoutMs) {
        throw new UnsupportedOperationException("the script moves the clock");
    }

    @Override
    public int size() {
        return queue.size();
    }

    @Override
    public void close() {
        queue.clear();
    }
}
