"""`./dev oracle WHAT`: Kafka's own classes on random cases, and ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from tests.oracle import consumer, coordinator, history, server, share_records
from tests.oracle.build import OracleBroke, OracleUnavailable
from tests.oracle.group_member import command as group_member
from tests.oracle.member import command as member
from tests.oracle.streams import command as streams
from tests.oracle.streams_thread import command as streams_thread

#: What can be asked for -> the module that does it: `add_arguments(parser)` and `run(options)`, which returns
#: the exit status.
ORACLES: dict[str, ModuleType] = {
    "consumer": consumer,
    "coordinator": coordinator,
    "group-member": group_member,
    "history": history,
    "member": member,
    "server": server,
    "share-records": share_records,
    "streams": streams,
    "streams-thread": streams_thread,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """0: no difference; 1: one at least; 2: bad options, or Kafka's classes cannot be run here."""
    parser = argparse.ArgumentParser(
        prog="./dev oracle", description="Random cases against Kafka's own Java classes."
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="|".join(ORACLES))
    for name, module in ORACLES.items():
        description = (module.__doc__ or "").partition("\n")[0]
        module.add_arguments(what.add_parser(name, description=description, help=description))
    options = parser.parse_args(arguments)
    try:
        return int(ORACLES[options.what].run(options))
    except (OracleUnavailable, OracleBroke) as problem:
        print(f"oracle: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
