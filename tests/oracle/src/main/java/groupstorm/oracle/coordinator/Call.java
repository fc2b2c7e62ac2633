package groupstorm.oracle.coordinator;

import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/**
 * A request that a step was made into.
 *
 * @param kind      what it is called in answers
 * @param memberId  the member id that it uses, null where it has no single one
 * @param ownLeave  whether it is a leave of the client itself, not of members that it names
 * @param send      hands it to the coordinator
 */
record Call(
    String kind,
    String memberId,
    boolean ownLeave,
    Function<GroupCoordinator, ? extends CompletableFuture<?>> send
) {
    /** Whether it is the heartbeat of a protocol in which heartbeats carry the membership. */
    boolean isModernHeartbeat() {
        return kind.equals("chb") || kind.equals("shb") || kind.equals("streams");
    }

    boolean mayBeParked() {
        return kind.equals("join") || kind.equals("sync");
    }
}
