"""Groups of the classic protocol: joins, syncs, heartbeats, leaves, rounds, sessions, static members."""
