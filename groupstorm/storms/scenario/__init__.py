"""Scenarios: their files, settings, steps and distributions."""
