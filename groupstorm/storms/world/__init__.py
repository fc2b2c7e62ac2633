"""The virtual world of a storm: the broker, its consumers, the network and the clock."""
