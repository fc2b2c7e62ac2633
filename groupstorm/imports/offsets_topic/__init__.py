"""The records of `__consumer_offsets`, in which a group coordinator keeps its groups and their offsets.

A record comes as a line that one of Kafka's tools printed (`text`), as bytes of a segment file (`segments`),
or from a running cluster. In every case it becomes a `WrittenRecord`, and then an observation (`meaning`).
"""
