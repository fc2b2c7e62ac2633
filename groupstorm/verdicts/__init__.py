"""Judgements over figures, in sentences: comparisons, rankings, recommendations, limits."""
