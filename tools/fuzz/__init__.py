"""Random scenarios, run and checked; what fails is shrunk and kept.

* `drawing`: a scenario from a seed and a number.
* `trial`: one scenario run in memory, and how it failed.
* `shrinking`: the smallest scenario that still fails in the same way.
* `corpus`: a folder of scenarios that failed once.
* `campaign`: trial after trial, on all cores.
"""
