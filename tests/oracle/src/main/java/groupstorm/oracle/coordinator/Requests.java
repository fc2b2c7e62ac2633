package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.coordinator.group.Release;

/** Steps become Kafka's requests: defaults and variables filled in. */
final class Requests {

    private static final JsonNode OWN = TextNode.valueOf("$");
    private static final String DEFAULT_PROTOCOL = "range";
    private static final int SYNC_KNOWS_PROTOCOL_SINCE = 5;

    private final Clients clients;
    private final Assignments assignments;
    private final OffsetRequests offsets;
    private final ConsumerHeartbeats consumerHeartbeats;
    private final ShareGroups shareGroups;
    private final StreamsGroups streamsGroups;

    Requests(
        Clients clients, Names names, Topics topics, ShareGroups shareGroups, StreamsGroups streamsGroups
    ) {
        this.shareGroups = shareGroups;
        this.streamsGroups = streamsGroups;
        this.clients = clients;
        this.assignments = new Assignments(clients, names, topics);
        this.offsets = new OffsetRequests(clients, topics);
        this.consumerHeartbeats = new ConsumerHeartbeats(clients);
    }

    /** The request of a step; {@link InvalidStep} where there is none. */
    Call build(Step step, String label) {
        return switch (step.op()) {
            case "join" -> join(step, label);
            case "sync" -> sync(step, label);
            case "heartbeat" -> heartbeat(step, label);
            case "leave" -> leave(step, label);
            case "commit" -> offsets.commit(step, label);
            case "fetch_offsets" -> offsets.fetch(step, label);
            case "describe" -> offsets.describe(step);
            case "chb" -> consumerHeartbeats.build(step, label);
            case "shb" -> shareGroups.heartbeat(step, label);
            case "describe_share" -> ShareGroups.describe(step);
            case "streams", "describe_streams" -> streamsGroups.build(step, label);
            case "delete_groups" -> ShareGroups.delete(step);
            default -> throw new InvalidStep("op: " + step.value("op") + " is not offered");
        };
    }

    private Call join(Step step, String label) {
        int version = step.version(9, 0, 9);
        var request = new JoinGroupRequestData()
            .setGroupId(step.optionalText("group", "g"))
            .setMemberId(clients.member(label, step.has("member") ? step.value("member") : TextNode.valueOf("")))
            .setGroupInstanceId(step.optionalText("instance", null))
            .setSessionTimeoutMs(step.int32("session", 10_000))
            .setRebalanceTimeoutMs(step.int32("rebalance", 60_000))
            .setProtocolType(step.text("type", "consumer"))
            .setReason(step.optionalText("reason", null));
        protocols(step, label).forEach(request.protocols()::add);
        // its constructor puts the session timeout where version 0 has no rebalance timeout
        JoinGroupRequestData data = new JoinGroupRequest(request, (short) version).data();
        Context context = context(ApiKeys.JOIN_GROUP, step, version);
        return new Call("join", data.memberId(), false,
            coordinator -> coordinator.joinGroup(context, data, Release.NO_CACHING));
    }

    private List<JoinGroupRequestProtocol> protocols(Step step, String label) {
        if (!step.has("protocols")) {
            return List.of(new JoinGroupRequestProtocol().setName(DEFAULT_PROTOCOL));
        }
        List<JoinGroupRequestProtocol> protocols = new ArrayList<>();
        Iterator<JsonNode> pairs = Step.elements("protocols", step.value("protocols"));
        while (pairs.hasNext()) {
            JsonNode pair = pairs.next();
            if (pair.size() != 2 || !pair.path(0).isTextual()) {
                throw new InvalidStep("protocols: " + pair + " is no pair of name and metadata");
            }
            JsonNode metadata = pair.get(1);
            byte[] bytes = metadata.isObject()
                ? ConsumerBytes.subscription(metadata, label, clients) : Step.base64("protocols", metadata);
            protocols.add(new JoinGroupRequestProtocol().setName(pair.get(0).textValue()).setMetadata(bytes));
        }
        return protocols;
    }

    private Call sync(Step step, String label) {
        int version = step.version(5, 0, 5);
        Client client = clients.get(label);
        boolean knowsProtocol = version >= SYNC_KNOWS_PROTOCOL_SINCE;
        var request = new SyncGroupRequestData()
            .setGroupId(step.optionalText("group", "g"))
            .setMemberId(member(step, label))
            .setGroupInstanceId(step.optionalText("instance", null))
            .setGenerationId(generation(step, label))
            .setProtocolType(step.optionalText("type", knowsProtocol ? client.protocolType : null))
            .setProtocolName(step.optionalText("protocol", knowsProtocol ? client.protocol : null))
            .setAssignments(assignments.of(step, label));
        Context context = context(ApiKeys.SYNC_GROUP, step, version);
        return new Call("sync", request.memberId(), false,
            coordinator -> coordinator.syncGroup(context, request, Release.NO_CACHING));
    }

    private Call heartbeat(Step step, String label) {
        var request = new HeartbeatRequestData()
            .setGroupId(step.optionalText("group", "g"))
            .setMemberId(member(step, label))
            .setGroupInstanceId(step.optionalText("instance", null))
            .setGenerationId(generation(step, label));
        Context context = context(ApiKeys.HEARTBEAT, step, step.version(4, 0, 4));
        return new Call("heartbeat", request.memberId(), false, coordinator -> coordinator.heartbeat(context, request));
    }

    private Call leave(Step step, String label) {
        boolean own = !step.has("members");
        var request = new LeaveGroupRequestData().setGroupId(step.optionalText("group", "g"));
        if (own) {
            request.members().add(new MemberIdentity()
                .setMemberId(member(step, label))
                .setGroupInstanceId(step.optionalText("instance", null)));
        } else {
            Step.elements("members", step.value("members"))
                .forEachRemaining(pair -> request.members().add(identity(pair, label)));
        }
        Context context = context(ApiKeys.LEAVE_GROUP, step, step.version(5, 0, 5));
        return new Call("leave", null, own, coordinator -> coordinator.leaveGroup(context, request));
    }

    private MemberIdentity identity(JsonNode pair, String label) {
        if (!pair.isArray() || pair.size() != 2) {
            throw new InvalidStep("members: " + pair + " is no pair of member and instance");
        }
        return new MemberIdentity()
            .setMemberId(clients.member(label, pair.get(0)))
            .setGroupInstanceId(Step.textOrNull("members", pair.get(1)));
    }

    private String member(Step step, String label) {
        return clients.member(label, step.has("member") ? step.value("member") : OWN);
    }

    private int generation(Step step, String label) {
        JsonNode value = step.has("generation") ? step.value("generation") : OWN;
        return clients.number("generation", label, value, client -> client.generation);
    }

    static Context context(ApiKeys api, Step step, int version) {
        return new Context(api, step.text("client_id", "client"), version);
    }
}
