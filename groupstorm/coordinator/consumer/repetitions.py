"""Nested repetitions as RE2/J takes them: RE2 itself refuses more than 1,000 in all, as ``(a{50}){50}``.

A repetition that is too large for RE2 is written as several in a row, each small enough: ``x{1,30}`` is
``x{1}x{0,15}x{0,14}``. They match the same texts; nobody asks which part has matched what.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: The most that RE2 repeats, with everything around (RE2's max_repeat), and RE2/J by one repetition.
MOST = 1_000
#: Longer expressions are not written: their programs would be too large.
_LONGEST = 100_000

_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|$)
    | (?P<open>\((?:\?(?:P?<\w+>|[A-Za-z-]*:))?) | (?P<close>\)) | (?P<flags>\(\?[A-Za-z-]+\))
    | (?P<count>\{(?P<least>\d+)(?P<comma>,(?P<most>\d*))?\}\??) | (?P<mark>[*+?]\??)
    | \\[pPx]\{[^}]*\} | \\. | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*(?:\]|$) | .""",
    re.DOTALL | re.VERBOSE,
)


class _Part(NamedTuple):
    """``repeated``: how often its innermost part is repeated by RE2's count."""

    text: str
    repeated: int = 1


def split_repetitions(regex: str, most: int = MOST) -> str | None:
    """The expression without repetitions of more than ``most`` in all; None if it cannot be written so."""
    groups: list[tuple[str, list[_Part]]] = [("", [])]
    for token in _TOKEN.finditer(regex):
        parts, text = groups[-1][1], token.group()
        if token["quoted"] is not None:
            parts += [_Part(re.escape(sign)) for sign in token["quoted"]]
        elif token["open"]:
            groups.append(("(" if "<" in text else text, []))  # a name may stand once only
        elif token["close"] and len(groups) > 1:
            start, inside = groups.pop()
            groups[-1][1].append(_joined(start, inside, ")"))
        elif token["mark"] and parts:
            parts[-1] = parts[-1]._replace(text=parts[-1].text + text)
        elif token["count"] and parts:
            repeated = _repeated(parts[-1], token, most)
            if repeated is None:
                return None
            parts[-1] = repeated
        else:
            parts.append(_Part(text))
    whole = _joined("", groups[0][1], "") if len(groups) == 1 else None
    return None if whole is None or len(whole.text) > _LONGEST else whole.text


def _joined(start: str, parts: list[_Part], end: str) -> _Part:
    inside = "".join(part.text for part in parts)
    return _Part(f"{start}{inside}{end}", max((part.repeated for part in parts), default=1))


def _repeated(part: _Part, token: re.Match[str], most: int) -> _Part | None:
    least = int(token["least"])
    upper = least if not token["comma"] else int(token["most"] or -1)
    count = max(least, upper)
    if count > MOST or -1 < upper < least:
        return None
    at_once = most // part.repeated
    if count <= at_once:
        return _Part(part.text + token["count"], part.repeated * max(count, 1))
    if not at_once or len(part.text) * count > _LONGEST:
        return None
    optional = [f"{{0,{size}}}" for size in _sizes(upper - least, at_once)] if upper >= 0 else ["*"]
    counts = [*(f"{{{size}}}" for size in _sizes(least, at_once)), *optional]
    return _Part("".join(part.text + one for one in counts), part.repeated * at_once)


def _sizes(count: int, most: int) -> list[int]:
    """``count`` in parts of at most ``most``."""
    return [most] * (count // most) + [count % most] * (count % most > 0)
