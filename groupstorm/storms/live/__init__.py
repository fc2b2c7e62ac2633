"""Scenarios in real time: members over TCP against a broker, emulated or real."""
