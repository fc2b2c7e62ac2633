"""Colours that people tell apart with any colour vision, on light and on dark ground.

Owners have Paul Tol's light scheme without its reds (personal.sron.nl/~pault): a time without an owner is the
one dark, or bright, red, which its lightness alone tells from every owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

#: Names of colours -> colour. The page takes the scheme of the reader's system, a picture the light one.
LIGHT: Final[Mapping[str, str]] = {
    "ground": "#ffffff",
    "text": "#1d2430",
    "faint": "#5b6675",
    "line": "#c9d0da",
    "empty": "#eef1f5",
    "gap": "#b3001b",
    "two": "#1d2430",
    "lag": "#0b62a4",
    "joining": "#3b3f8f",
    "rejoining": "#8d9ae0",
    "paused": "#7a4b00",
    "idle": "#c3c9d2",
    "owns": "#5fbf9f",
}
DARK: Final[Mapping[str, str]] = {
    "ground": "#14181f",
    "text": "#e6e9ee",
    "faint": "#a0abba",
    "line": "#3a4352",
    "empty": "#1d232d",
    "gap": "#ff6b5e",
    "two": "#ffffff",
    "lag": "#6cb8f5",
    "joining": "#b9bdf7",
    "rejoining": "#6d78c9",
    "paused": "#e0a84a",
    "idle": "#4a5361",
    "owns": "#2f7d66",
}
OWNERS_LIGHT: Final = (
    "#77aadd", "#eedd88", "#44bb99", "#cbb4e8", "#99ddff", "#bbcc33", "#dddddd", "#aaaa00",
)  # fmt: skip
OWNERS_DARK: Final = (
    "#3f6a95", "#8a7c35", "#23705a", "#6d5a8c", "#3a7f9e", "#66721b", "#666c75", "#5c5c10",
)  # fmt: skip
#: The number of the grey one: the colour of all owners if they are too many to be told apart.
CROWD: Final = 6


def css() -> str:
    """The colours as custom properties of CSS, the dark ones for a screen that asks for them."""
    return (
        f":root {{ {_properties(LIGHT, OWNERS_LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_properties(DARK, OWNERS_DARK)} }} }}\n"
    )


def _properties(colours: Mapping[str, str], owners: Sequence[str]) -> str:
    named = {**colours, **{f"owner{place}": colour for place, colour in enumerate(owners)}}
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def owner_colour(member: int) -> str:
    """The colour of the member of that number, on light ground."""
    return OWNERS_LIGHT[member % len(OWNERS_LIGHT)]
