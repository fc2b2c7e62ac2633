package groupstorm.oracle.speed;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;

/**
 * Phase 1 of KAFKA-12464 in its two forms: one partition after the other, and with {@code subList} and {@code
 * removeAll}, which is said to be quicker. Every member owns what it may keep, as in a group where nothing changed.
 */
final class OwnedLoops {

    private static final Comparator<TopicPartition> ORDER =
        Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);

    private final Map<String, List<TopicPartition>> owned = new HashMap<>();
    private final List<TopicPartition> everything = new ArrayList<>();
    private final int quota;

    OwnedLoops(int members, int partitions) {
        this.quota = (partitions + members - 1) / members;
        for (int partition = 0; partition < partitions; partition++) {
            TopicPartition one = new TopicPartition("t", partition);
            everything.add(one);
            owned.computeIfAbsent("member-" + partition % members, member -> new ArrayList<>()).add(one);
        }
    }

    void oneByOne() {
        SortedSet<TopicPartition> unassigned = sorted();
        Collection<TopicPartition> revoked = new ArrayList<>();
        owned.values().forEach(mine -> {
            List<TopicPartition> kept = new ArrayList<>();
            for (TopicPartition one : mine) {
                if (kept.size() < quota) {
                    kept.add(one);
                    unassigned.remove(one);
                } else {
                    revoked.add(one);
                }
            }
        });
        demandNone(unassigned);
    }

    void subLists() {
        SortedSet<TopicPartition> unassigned = sorted();
        Collection<TopicPartition> revoked = new ArrayList<>();
        owned.values().forEach(mine -> {
            int keep = Math.min(quota, mine.size());
            List<TopicPartition> kept = new ArrayList<>(mine.subList(0, keep));
            unassigned.removeAll(mine.subList(0, keep));
            revoked.addAll(mine.subList(keep, mine.size()));
            if (kept.size() != keep) {
                throw new IllegalStateException("kept too few");
            }
        });
        demandNone(unassigned);
    }

    private SortedSet<TopicPartition> sorted() {
        SortedSet<TopicPartition> unassigned = new TreeSet<>(ORDER);
        unassigned.addAll(everything);
        return unassigned;
    }

    private static void demandNone(SortedSet<TopicPartition> unassigned) {
        if (!unassigned.isEmpty()) {
            throw new IllegalStateException(unassigned.size() + " partitions are left");
        }
    }
}
