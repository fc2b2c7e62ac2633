"""What kafka-consumer-groups --describe prints: who owned what at one time."""
