"""The version of the package: here, so that parts can name it without the package's root."""

from __future__ import annotations

__version__ = "0.1.0"
