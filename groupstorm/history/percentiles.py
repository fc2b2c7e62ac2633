"""Percentiles by nearest rank."""

from __future__ import annotations


def percentile(ascending: list[int], percent: int) -> int:
    """The smallest value that at least ``percent`` of 100 values do not exceed (nearest rank); 0 of none."""
    if not ascending:
        return 0
    return ascending[nearest_rank(len(ascending), percent) - 1]


def nearest_rank(count: int, percent: int) -> int:
    """The place, from 1, of a percentile among ``count`` ascending values."""
    return max(1, -(-count * percent // 100))
