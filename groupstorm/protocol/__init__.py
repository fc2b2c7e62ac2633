"""Kafka's bytes, for broker and clients: schemas, codec, headers, framing, addresses. Knows no group."""
