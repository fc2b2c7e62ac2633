"""Traces on Spark: rows -> ownership, handovers, rounds, members -> figures.

Plain functions from DataFrame to DataFrame, for any number of runs at once; each row carries its ``run``.
`tables.trace_tables` puts them together, `session.spark_session` gives them a Spark to run on.
"""
