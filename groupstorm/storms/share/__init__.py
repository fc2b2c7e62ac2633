"""Share groups in storms (KIP-932): share consumers, and the leader of their partitions."""
