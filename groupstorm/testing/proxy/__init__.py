"""A proxy in front of a real broker, which carries out faults: it speaks Kafka's protocol."""
