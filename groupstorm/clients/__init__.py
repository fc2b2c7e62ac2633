"""Members of a group: the consumer's side of the classic protocol, as Kafka's Java client does it."""
