"""Groups of Kafka Streams applications (KIP-1071): topologies, tasks of the broker, reconciliation."""
