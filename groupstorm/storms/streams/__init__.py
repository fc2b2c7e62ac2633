"""Storms of Kafka Streams applications: instances whose threads are the members, and the state they carry."""

from __future__ import annotations
