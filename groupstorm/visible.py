"""Names that come from outside, as terminals, pages and spreadsheets may show them.

Kafka takes any string as a client.id, a group or a member: a name can hold a terminal's escape sequences,
line ends, or marks that turn the direction of what follows. Each such character is shown as Python would
write it (`\\x1b`), so that a name does nothing and two names never look equal. Letters of any script and
emoji stay. Data files hold the names as they are; JSON has escapes of its own.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
import zlib
from html import escape
from typing import Any, Final

#: Controls, marks of direction, signs without width, line ends of Unicode, blanks that look like a blank,
#: halves of surrogate pairs, and code points that XML does not have. A joiner is part of a script or an emoji
#: if it stands between characters beyond ASCII.
_HIDDEN: Final = (
    r"[\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200b\u200e\u200f\u2028-\u202f"
    r"\u205f-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
    r"|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_HIDDEN_SIGN: Final = re.compile(_HIDDEN)
#: A backslash is written twice if one alone would read as an escape.
_ESCAPED_SIGN: Final = re.compile(
    rf"{_HIDDEN}|\\(?=[\\nrt]|x[0-9a-f]{{2}}|u[0-9a-f]{{4}}|U[0-9a-f]{{8}}|{_HIDDEN})"
)
#: A longer word is shown by its ends, its length and a checksum.
_WORD_MAX: Final = 1_000
_ENDS: Final = 100
_LONG_WORD: Final = re.compile(rf"\S{{{_WORD_MAX + 1},}}")
_FORMULA: Final = re.compile(r"[=+\-@](?!\d*\.?\d*(e[+-]?\d+)?$)")
#: An underscore within a word is none.
_MARKUP: Final = re.compile(r"[\\`*\[\]<>&~|]|(?<![^\W_])_|_(?![^\W_])")
#: How rich and our tables style, and how rich draws progress.
_DRAWING: Final = re.compile(rf"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)|{_HIDDEN}")
_LINES: Final = re.compile(rf"(\n)|{_HIDDEN}")


def visible(text: str) -> str:
    """``text`` in one line without characters that are not seen; very long words are shortened."""
    return _LONG_WORD.sub(_ends, escaped(text))


def escaped(text: str) -> str:
    """``text`` in one line without characters that are not seen."""
    return _ESCAPED_SIGN.sub(_python_escape, text)


def wrapped(text: str, width: int) -> list[str]:
    """``text``, made visible, in lines of at most ``width`` characters; no word is broken."""
    return textwrap.wrap(visible(text), width, break_long_words=False, break_on_hyphens=False) or [""]


def without_controls(text: str) -> str:
    """``text`` as `visible` shows it, but with its backslashes as they are: they may be escapes already."""
    return _LONG_WORD.sub(_ends, _HIDDEN_SIGN.sub(_python_escape, text))


def visible_lines(text: str, is_terminal: bool) -> str:
    """Any output as its last reader may get it: lines, on a terminal with the styles that we write there."""
    return (_DRAWING if is_terminal else _LINES).sub(lambda found: found[1] or _python_escape(found), text)


def visible_xml(text: str) -> str:
    """``text`` for an element or an attribute of HTML or SVG."""
    return escape(visible(text))


def visible_markdown(text: str) -> str:
    """``text`` in which nothing is markup, for a line or a table's cell of GitHub's Markdown."""
    return _MARKUP.sub(r"\\\g<0>", visible(text))


def visible_csv(value: object) -> object:
    """A field that no spreadsheet computes: an apostrophe stands before the beginning of a formula."""
    if not isinstance(value, str):
        return value
    shown = escaped(value)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def visible_json(value: Any) -> str:
    """``value`` as one line of JSON, which reads back as it was."""
    return visible_in_json(json.dumps(value, ensure_ascii=False))


def visible_in_json(text: str) -> str:
    """``text``, which is JSON, with escapes for what is not seen."""
    return _HIDDEN_SIGN.sub(_json_escape, text)


def visible_word(word: str) -> str:
    """``word`` quoted for a shell, which reads it as it was."""
    if _HIDDEN_SIGN.search(word) is None:
        return shlex.quote(word)
    quoted = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_HIDDEN_SIGN.sub(_shell_escape, quoted)}'"


def _python_escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _json_escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _shell_escape(found: re.Match[str]) -> str:
    sign = found[0]
    is_byte = "\udc80" <= sign <= "\udcff"  # of a file's name that is no UTF-8
    return "".join(
        f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")
    )


def _ends(found: re.Match[str]) -> str:
    word = found[0]
    checksum = zlib.crc32(word.encode("utf-8", "surrogatepass"))
    return f"{word[:_ENDS]}...[{len(word):,} characters, crc32 {checksum:08x}]...{word[-_ENDS:]}"
