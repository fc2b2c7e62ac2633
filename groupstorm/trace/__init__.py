"""The trace: one versioned schema for everything that a group did, whoever wrote it.

A trace is a sequence of rows. Each row is one typed event, flattened: the event's fields are columns
(`schema.COLUMNS`), and a column that an event does not have is null. The event types are in `trace/events`.
"""
