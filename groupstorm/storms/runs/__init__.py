"""Runs and their files: one run, several, sweeps; the steps that a run takes, and when it ends."""
