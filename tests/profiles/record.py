"""Record the real clients anew: `python -m tests.profiles.record [NAME...]`, two minutes, all at once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.profiles.clients import CLIENTS, Client, Missing
from tests.profiles.recording import SESSIONS, record, write


def main(names: list[str]) -> None:
    clients: dict[str, Client] = {}
    for name in names or SESSIONS:
        try:
            clients[name] = CLIENTS[SESSIONS[name].profile]()
        except Missing as missing:
            print(f"{name}: not recorded: {missing}", file=sys.stderr)
    with ThreadPoolExecutor(len(clients) or 1) as pool:
        recordings = pool.map(lambda name: record(clients[name], SESSIONS[name]), clients)
        for name, recording in zip(clients, recordings, strict=True):
            write(name, recording)
            print(f"{name}: {len(recording.rows)} lines of {recording.client}")


if __name__ == "__main__":
    main(sys.argv[1:])
