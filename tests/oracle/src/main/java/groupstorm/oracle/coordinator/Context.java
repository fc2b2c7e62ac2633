package groupstorm.oracle.coordinator;

import java.net.InetAddress;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Who sends a request, and in which version: all that the coordinator looks at. */
record Context(ApiKeys api, String clientId, int requestVersion) implements AuthorizableRequestContext {

    @Override
    public String listenerName() {
        return "PLAINTEXT";
    }

    @Override
    public SecurityProtocol securityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    @Override
    public KafkaPrincipal principal() {
        return KafkaPrincipal.ANONYMOUS;
    }

    @Override
    public InetAddress clientAddress() {
        return InetAddress.getLoopbackAddress();
    }

    @Override
    public int requestType() {
        return api.id;
    }

    @Override
    public int correlationId() {
        return 0;
    }
}
