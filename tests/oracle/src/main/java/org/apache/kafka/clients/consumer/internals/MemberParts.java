package org.apache.kafka.clients.consumer.internals;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.SortedSet;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.events.BackgroundEvent;
import org.apache.kafka.clients.consumer.internals.events.BackgroundEventHandler;
import org.apache.kafka.clients.consumer.internals.metrics.AsyncConsumerMetrics;
import org.apache.kafka.clients.consumer.internals.metrics.ConsumerRebalanceMetricsManager;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;

/** What stands around the two managers of a member, as the script says it is: coordinator, metadata, commits. */
final class MemberParts {

    private static final LogContext LOG = new LogContext();

    private MemberParts() {
    }

    /** A coordinator that is known or not. Kafka's own finds it with a random pause. */
    static final class Coordinator extends CoordinatorRequestManager {

        private boolean known = true;

        Coordinator(String group) {
            super(LOG, 100, 1000, group);
        }

        void known(boolean isKnown) {
            known = isKnown;
        }

        @Override
        public Optional<Node> coordinator() {
            return known ? Optional.of(new Node(1, "broker", 9092)) : Optional.empty();
        }

        @Override
        public void markCoordinatorUnknown(String cause, long nowMs) {
            known = false;
        }
    }

    /** The topic ids that the client knows. */
    static final class Topics extends ConsumerMetadata {

        private final Map<Uuid, String> names = new HashMap<>();
        private final Runnable onRequest;

        Topics(ConsumerConfig config, SubscriptionState subscriptions, Runnable onRequest) {
            super(config, subscriptions, LOG, new ClusterResourceListeners());
            this.onRequest = onRequest;
        }

        void learn(Uuid id, String name) {
            names.put(id, name);
        }

        void forget(Uuid id) {
            names.remove(id);
        }

        @Override
        public Map<Uuid, String> topicNames() {
            return names;
        }

        @Override
        public synchronized int requestUpdate(boolean resetEquivalentResponseBackoff) {
            onRequest.run();
            return super.requestUpdate(resetEquivalentResponseBackoff);
        }
    }

    /** Kafka's commits, with pauses that chance does not stretch. */
    static CommitRequestManager commits(
        Time time, SubscriptionState subscriptions, MemberSettings settings, Coordinator coordinator, Metrics metrics,
        Topics topics
    ) {
        return new CommitRequestManager(
            time, LOG, subscriptions, settings.config(), coordinator, new OffsetCommitCallbackInvoker(new ConsumerInterceptors<>(List.of(), metrics)), "g",
            settings.instance(), settings.retryBackoffMs(), settings.retryBackoffMaxMs(), OptionalDouble.of(0), metrics, topics
        );
    }

    /** Hands every event for the application to the script. */
    static final class Events extends BackgroundEventHandler {

        private final Consumer<BackgroundEvent> onEvent;

        Events(Time time, Metrics metrics, Consumer<BackgroundEvent> onEvent) {
            super(new LinkedBlockingQueue<>(), time, new AsyncConsumerMetrics(metrics, "consumer"));
            this.onEvent = onEvent;
        }

        @Override
        public void add(BackgroundEvent event) {
            onEvent.accept(event);
        }
    }

    /** Kafka's manager, with the moment at which the member stops fetching from partitions. */
    static final class Membership extends ConsumerMembershipManager {

        private final Consumer<Set<TopicPartition>> onPause;

        Membership(
            MemberSettings settings, SubscriptionState subscriptions, CommitRequestManager commits, Topics topics, Events events,
            Time time, Metrics metrics, Consumer<Set<TopicPartition>> onPause
        ) {
            super(
                "g", settings.instance(), settings.rack(), settings.maxPollIntervalMs(), settings.assignor(), subscriptions,
                commits, topics, LOG, events, time, new ConsumerRebalanceMetricsManager(metrics, subscriptions),
                settings.autoCommit()
            );
            this.onPause = onPause;
            registerStateListener(commits);
        }

        @Override
        protected void markPendingRevocationToPauseFetching(Set<TopicPartition> partitions) {
            onPause.accept(partitions);
            super.markPendingRevocationToPauseFetching(partitions);
        }

        void apply(Set<TopicPartition> assigned, SortedSet<TopicPartition> added) {
            applyAssignment(assigned, added);
        }
    }
}
