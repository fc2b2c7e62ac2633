"""Share groups (KIP-932): members that share partitions, and the partitions whose state is initialised."""
