"""What every result can do: print itself, show itself in a notebook, become a data frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape

from groupstorm.report.grid import Grid
from groupstorm.visible import wrapped

WIDTH = 80
"""The width of a printed result."""


class Result(ABC):
    """The answer, in sentences, and a table of the figures that people ask for first."""

    @property
    @abstractmethod
    def answer(self) -> str:
        """The answer to the scenario's question, in sentences."""

    @abstractmethod
    def _grid(self) -> Grid:
        """The table of figures."""

    def _paragraphs(self) -> list[str]:
        """What stands below the table."""
        return [self.answer]

    def __str__(self) -> str:
        below = [line for paragraph in self._paragraphs() for line in wrapped(paragraph, WIDTH)]
        return "\n".join([*self._grid().text(WIDTH), "", *below])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        below = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in self._paragraphs())
        return f"{self._grid().html()}{below}"
