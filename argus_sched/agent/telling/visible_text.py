"""Foreign text made safe to show, and lengths as Telegram counts them, in UTF-16 units."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"
# Joiners and variation selectors are part of emoji and of several scripts; all other format characters
# (overrides of the writing direction, invisible tags) can make a line read as what it is not.
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def units(text: str) -> int:
    """How many UTF-16 units `text` takes; a lone surrogate counts as one."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def visible(text: str) -> str:
    """`text` on one line, with control and format characters and lone surrogates written as escapes."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def brief(text: str, limit: int) -> str:
    """`text` made visible, in at most `limit` UTF-16 units; a huge one costs no more than what is shown."""
    # Every character is shown as one or more.
    return clip(visible(text[: limit + 1]), limit)


def clip(text: str, limit: int) -> str:
    """`text` in at most `limit` UTF-16 units, ending in an ellipsis when cut.

    Never cuts inside a character: not between a letter and its marks, nor inside a joined emoji.
    """
    if units(text) <= limit:
        return text
    room, end = limit - units(ELLIPSIS), 0
    for character in text:
        room -= 1 + (character > "\uffff")
        if room < 0:
            break
        end += 1
    while end and _continues(text, end):
        end -= 1
    return text[:end] + ELLIPSIS if limit > 0 else ""


def _continues(text: str, index: int) -> bool:
    """Whether the character at `index` belongs to the one before it."""
    here = text[index]
    if index == 0:
        return False
    return (
        unicodedata.combining(here) != 0
        or unicodedata.category(here) in {"Mn", "Me", "Mc"}
        or here in _JOINERS
        or "\U0001f3fb" <= here <= "\U0001f3ff"
        or text[index - 1] == "\u200d"
    )


def _shown(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character in _JOINERS or unicodedata.category(character) not in _UNSEEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
