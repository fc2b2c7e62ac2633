import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * Asks Kafka's StandardAuthorizer. A line in is a case, fields with tabs between them: allow.everyone.if.no.acl.found;
 * rules with ; between them, their parts with | between them; questions likewise. A line out is a digit a question.
 */
public class Decisions {
    record Client(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.SASL_PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "client"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(decide(line.split("\t", -1)));
        }
    }

    static String decide(String[] fields) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", "User:root;User:CN=r, O=x", "allow.everyone.if.no.acl.found", fields[0]));
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        for (String rule : fields[1].isEmpty() ? new String[0] : fields[1].split(";")) {
            String[] parts = rule.split("\\|", -1);
            acls.put(Uuid.randomUuid(), new StandardAcl(
                ResourceType.valueOf(parts[0]), parts[1], PatternType.valueOf(parts[2]), parts[3], parts[4],
                AclOperation.valueOf(parts[5]), AclPermissionType.valueOf(parts[6])));
        }
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        StringBuilder answers = new StringBuilder();
        for (String question : fields[2].split(";")) {
            String[] parts = question.split("\\|", -1);
            Client client = new Client(new KafkaPrincipal("User", parts[0]), InetAddress.getByName(parts[1]));
            AclOperation operation = AclOperation.valueOf(parts[2]);
            ResourceType type = ResourceType.valueOf(parts[3]);
            var result = parts[4].equals("*any*")
                ? authorizer.authorizeByResourceType(client, operation, type)
                : authorizer.authorize(client, List.of(new Action(
                    operation, new ResourcePattern(type, parts[4], PatternType.LITERAL), 1, false, false))).get(0);
            answers.append(result.name().equals("ALLOWED") ? "1" : "0");
        }
        return answers.toString();
    }
}
