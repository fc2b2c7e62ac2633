"""Files of properties, as java.util.Properties reads them: `name=value` lines of clients and applications."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"\s*(?P<name>(?:\\.|[^\s:=\\])+)\s*[:=]?\s*(?P<value>.*)", re.DOTALL)


def parse_java_properties(text: str) -> dict[str, str]:
    """Name -> value; of several values of a name the last. A line without a name is ignored."""
    options = {}
    for line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        if match is not None:
            options[_unescaped(match["name"])] = _unescaped(match["value"])
    return options


def _logical_lines(text: str) -> list[str]:
    """Join lines: one that ends with an odd number of backslashes continues in the next line."""
    lines: list[str] = []
    goes_on = False
    for natural in text.splitlines():
        line = natural.lstrip()
        if not goes_on and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        part = line[:-1] if backslashes % 2 else line
        if goes_on:
            lines[-1] += part
        else:
            lines.append(part)
        goes_on = backslashes % 2 == 1
    return lines


def _unescaped(text: str) -> str:
    def sign(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _SIGNS.get(escape, escape)

    return _ESCAPE.sub(sign, text)
