"""The ledger of a test: which numbered records were lost, processed twice or out of order."""

from __future__ import annotations

from groupstorm.testing.ledger.history import Allowed, Finding, Kind
from groupstorm.testing.ledger.ledger import Ledger, LedgerFailed
from groupstorm.testing.ledger.report import Report

__all__ = ["Allowed", "Finding", "Kind", "Ledger", "LedgerFailed", "Report"]
