package groupstorm.oracle.coordinator;

/** The scenario cannot be run at all. */
final class ScenarioFailed extends RuntimeException {
    private static final long serialVersionUID = 1;

    ScenarioFailed(String why) {
        super(why, null, false, false);
    }
}
