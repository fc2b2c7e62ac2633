"""Records of share groups (KIP-932): their states on a leader, sessions, and the share coordinator.

Sans-IO, as Kafka 4.4.0 decides: `broker.ShareBroker` takes requests and the time, and gives answers.
"""
