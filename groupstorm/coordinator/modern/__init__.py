"""The parts that consumer and streams groups share; neither wing is known here."""
