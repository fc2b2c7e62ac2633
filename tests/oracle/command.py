"""`./dev oracle WHAT`: Kafka's own classes on random cases, and ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType

from tests.oracle import coordinator, history, share_records
from tests.oracle.assignors import running
from tests.oracle.assignors.differential import Side
from tests.oracle.assignors.sides import CONSUMER, SERVER
from tests.oracle.build import OracleBroke, OracleUnavailable
from tests.oracle.group_member import command as members
from tests.oracle.member import command as member
from tests.oracle.streams.side import STREAMS

#: What can be asked for, beside the kinds of assignors and members -> the module that does it:
#: `add_arguments(parser)` and `run(options)`, which returns the exit status.
ORACLES: dict[str, ModuleType] = {
    "coordinator": coordinator,
    "history": history,
    "member": member,
    "share-records": share_records,
}

#: Assignors that are held against Kafka's.
SIDES: dict[str, Side] = {side.command: side for side in (CONSUMER, SERVER, STREAMS)}


def main(arguments: Sequence[str] | None = None) -> int:
    """0: no difference; 1: one at least; 2: bad options, or Kafka's classes cannot be run here."""
    parser = argparse.ArgumentParser(
        prog="./dev oracle", description="Random cases against Kafka's own Java classes."
    )
    what = parser.add_subparsers(
        dest="what", required=True, metavar="|".join(sorted([*ORACLES, *SIDES, *members.KINDS]))
    )
    for name, module in ORACLES.items():
        description = (module.__doc__ or "").partition("\n")[0]
        one = what.add_parser(name, description=description, help=description)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    for name, side in SIDES.items():
        one = what.add_parser(name, description=side.title, help=side.title)
        running.add_arguments(one, side)
        one.set_defaults(run=partial(running.run, side=side))
    for name, kind in members.KINDS.items():
        one = what.add_parser(name, description=kind.title, help=kind.title)
        members.add_arguments(one, kind)
        one.set_defaults(run=partial(members.run, kind=kind))
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (OracleUnavailable, OracleBroke) as problem:
        print(f"oracle: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
