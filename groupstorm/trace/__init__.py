"""The trace: one versioned schema for everything that a group did, whoever wrote it.

A trace is a sequence of rows. Each row is one typed event, flattened: the event's
fields are columns (`schema.COLUMNS`), a column that an event does not have is null.
This room knows rows, files and columns; the event types stand where they happen
(`coordinator/events.py`, `clients/events.py`, `storms/events.py`).
"""
