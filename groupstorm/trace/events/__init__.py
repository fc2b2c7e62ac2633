"""The typed events of a trace, by who saw them: coordinator, member, Kafka Streams thread, scenario."""
