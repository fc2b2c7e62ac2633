package groupstorm.oracle.coordinator;

import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;

/** The runtime's events on the caller's thread: whoever enqueues the first one runs all that follow from it. */
public final class SerialEvents implements CoordinatorEventProcessor {

    private final Deque<CoordinatorEvent> queue = new ArrayDeque<>();
    private boolean running = false;

    @Override
    public void enqueueLast(CoordinatorEvent event) {
        queue.addLast(event);
        runAll();
    }

    @Override
    public void enqueueFirst(CoordinatorEvent event) {
        queue.addFirst(event);
        runAll();
    }

    private void runAll() {
        if (running) {
            return;
        }
        running = true;
        try {
            while (!queue.isEmpty()) {
                CoordinatorEvent event = queue.removeFirst();
                try {
                    event.run();
                } catch (RuntimeException | Error thrown) {
                    event.complete(thrown);
                }
            }
        } finally {
            running = false;
        }
    }

    @Override
    public void close() {
        queue.clear();
    }
}
