"""Storms of Kafka Streams applications: instances, whose threads are the members, and their state."""

from __future__ import annotations
