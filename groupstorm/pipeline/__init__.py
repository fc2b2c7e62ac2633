"""`groupstorm analyze`: traces -> figures and tables (intervals, handovers, rounds, members), by two engines.

`local` reads one trace after the other in this process. `spark` has plain functions from DataFrame to
DataFrame, for any number of runs at once: each row carries its ``run``; `tables.trace_tables` puts them
together, and `session.spark_session` gives them a Spark to run on.
"""
