package groupstorm.oracle.coordinator;

import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;

/** m1, m2, ...: short names of the ids that the coordinator drew, in the order in which they were seen. */
final class Names {

    private static final Pattern NAME = Pattern.compile("m\\d+");

    private final Map<String, String> names = new HashMap<>();
    private final Map<String, String> ids = new LinkedHashMap<>();

    /** Names by number, before what stands for itself. */
    final Comparator<String> order = Comparator.comparingInt(this::rank).thenComparing(Comparator.naturalOrder());

    static boolean isName(String text) {
        return NAME.matcher(text).matches();
    }

    /** Names those that have no name yet; ids that are seen at once in the order in which they were drawn. */
    void see(Collection<String> seen) {
        List<String> added = seen.stream()
            .filter(Objects::nonNull)
            .filter(id -> !names.containsKey(id) && DrawnUuids.number(id) != null)
            .distinct()
            .sorted(Comparator.comparing(DrawnUuids::number))
            .toList();
        for (String id : added) {
            String name = "m" + (names.size() + 1);
            names.put(id, name);
            ids.put(name, id);
        }
    }

    /** The id's name; an id that was not drawn stands for itself, null for null. */
    String name(String id) {
        return id == null ? null : names.getOrDefault(id, id);
    }

    /** The id of that name; "no-m3" where there is no m3 yet. */
    String id(String name) {
        return ids.getOrDefault(name, "no-" + name);
    }

    Map<String, String> ids() {
        return ids;
    }

    private int rank(String name) {
        return ids.containsKey(name) ? Integer.parseInt(name.substring(1)) : Integer.MAX_VALUE;
    }
}
