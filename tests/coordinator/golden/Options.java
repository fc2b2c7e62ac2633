import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/** Prints Kafka's options of the group coordinator and of share groups: name, type, default and what checks a value. */
public class Options {
    public static void main(String[] arguments) {
        TreeMap<String, ConfigDef.ConfigKey> keys = new TreeMap<>(GroupCoordinatorConfig.CONFIG_DEF.configKeys());
        ShareGroupConfig.CONFIG_DEF.configKeys().forEach((name, key) -> {
            if (name.startsWith("group.") && !key.internalConfig) {
                keys.put(name, key);
            }
        });
        for (ConfigDef.ConfigKey key : keys.values()) {
            String standard = ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(key.name + "|" + key.type + "|" + standard + "|" + key.validator);
        }
    }
}
