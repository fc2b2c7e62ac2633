import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;

/** Prints Kafka's options of the group coordinator: name, type, default and what checks a value. */
public class Options {
    public static void main(String[] arguments) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(GroupCoordinatorConfig.CONFIG_DEF.configKeys()).values()) {
            String standard = ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(key.name + "|" + key.type + "|" + standard + "|" + key.validator);
        }
    }
}
