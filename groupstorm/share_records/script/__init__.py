"""Runs the scripts of `groupstorm script --records`."""
