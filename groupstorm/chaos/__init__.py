"""`groupstorm chaos`: a person's own processes under the steps of a scenario, with a ledger as judge."""

from __future__ import annotations
