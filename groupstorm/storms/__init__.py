"""Scenarios -> runs: the virtual world, its network and faults, presets, checkers, figures."""
