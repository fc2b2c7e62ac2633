"""Scenarios in real time with unmodified client libraries: worker processes, real records."""
