"""Kafka's group coordinator, emulated faithfully in protocol and in time."""

__version__ = "0.1.0"
