"""Near names for a name that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_NAMES_TO_LIST = 12


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that `name` most resembles, or None if none is close."""
    # difflib costs 4 ms to import and is needed only when something is wrong.
    import difflib

    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def remedy(name: str, known: Iterable[str], what: str) -> str:
    """Returns what to do about an unknown `name`: the nearest one, or the ones allowed."""
    names = sorted(known)
    guess = nearest(name, names)
    if guess is not None:
        return f"did you mean {guess!r}?"
    if not names:
        return f"there is no {what} yet"
    listed = ", ".join(names[:_MOST_NAMES_TO_LIST])
    more = len(names) - _MOST_NAMES_TO_LIST
    return f"use one of: {listed}" + (f" and {more} more" if more > 0 else "")
