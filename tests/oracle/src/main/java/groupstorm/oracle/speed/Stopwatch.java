package groupstorm.oracle.speed;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** The CPU time of the calling thread: collector and compiler threads do not count. */
final class Stopwatch {

    /** Work to time. */
    interface Work {
        void run() throws Exception;
    }

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

    double cpuMillis(Work work) throws Exception {
        System.gc(); // what others have left behind is not this work's
        long start = threads.getCurrentThreadCpuTime();
        work.run();
        return (threads.getCurrentThreadCpuTime() - start) / 1e6;
    }
}
