"""`groupstorm capture`: what a running cluster says about groups. Nothing is written to it."""
