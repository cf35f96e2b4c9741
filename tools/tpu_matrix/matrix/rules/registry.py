"""The one table of rules: every code that a finding may carry, and the check behind it.

A rule is a function in a module of this package, decorated with `rule`.  Its page is
`docs/support-matrix/rules/<CODE>.md`, whose failing and passing examples are its tests.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Iterator

from tpu_matrix.evidence.record import Record
from tpu_matrix.matrix.claims import Matrix
from tpu_matrix.matrix.finding import Finding, Location


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a check reports; the registry adds its code."""

    location: Location
    message: str
    remedy: str


@dataclasses.dataclass(frozen=True)
class Context:
    """Everything that a check may look at."""

    matrix: Matrix
    now: dt.datetime
    committed: tuple[Record, ...] = ()
    """The records of the committed evidence snapshot."""

    @property
    def today(self) -> dt.date:
        """The present date in UTC."""
        return self.now.astimezone(dt.UTC).date()


Check = Callable[[Context], Iterable[Problem]]


@dataclasses.dataclass(frozen=True)
class Rule:
    """A code, what it is about, and its check; loaders report the codes without one."""

    code: str
    title: str
    check: Check | None = None


RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        Rule("TM001", "A file is missing, unreadable or not UTF-8"),
        Rule("TM002", "A file is not valid YAML"),
        Rule("TM003", "A key is written twice"),
        Rule("TM004", "An anchor, alias, tag or merge key is used"),
        Rule("TM005", "A key is unknown"),
        Rule("TM006", "A value has the wrong type or is not a known value"),
        Rule("TM007", "A required key is missing"),
        Rule("TM050", "A line of evidence cannot be read"),
    )
}
"""Every rule by its code; codes are never reused."""


def rule(code: str, title: str) -> Callable[[Check], Check]:
    """Registers a check under its code."""

    def register(check: Check) -> Check:
        if code in RULES:
            raise ValueError(f"{code}: the code is taken by {RULES[code].title!r}")
        RULES[code] = Rule(code, title, check)
        return check

    return register


def run_rules(context: Context) -> Iterator[Finding]:
    """Yields every finding of every rule."""
    for entry in RULES.values():
        if entry.check is not None:
            for problem in entry.check(context):
                yield Finding(problem.location, entry.code, problem.message, problem.remedy)
