"""Scenarios and their runs: settings and steps, the virtual world, real time, Kafka Streams, presets."""
