"""Records as functions of time: their rates, the ends of the logs, the positions of the members."""
