"""Mutation testing of a room by its fast tests: `python -m tests.mutation --help`."""
