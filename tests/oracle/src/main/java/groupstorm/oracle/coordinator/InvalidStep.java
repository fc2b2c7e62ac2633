package groupstorm.oracle.coordinator;

/** The step cannot be made into a request; the scenario goes on. */
final class InvalidStep extends RuntimeException {
    private static final long serialVersionUID = 1;

    InvalidStep(String why) {
        super(why, null, false, false);
    }
}
