"""The lines that programs write about groups: one literal table per program, read from its sources."""
