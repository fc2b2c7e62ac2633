"""Traces printed as logs: what `groupstorm trace --as` writes."""
