"""From the observations of a group, in the order of time, to the rows of its trace."""
