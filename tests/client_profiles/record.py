"""Record the real clients anew, in two minutes: `python -m tests.client_profiles.record [NAME...]`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.client_profiles.clients import CLIENTS, Client
from tests.client_profiles.recording import GROUP_SESSIONS, SESSIONS, record, write
from tests.needs import Missing


def main(names: list[str]) -> None:
    clients: dict[str, Client] = {}
    sessions = {**SESSIONS, **GROUP_SESSIONS}
    for name in names or sessions:
        try:
            clients[name] = CLIENTS[sessions[name].profile]()
        except Missing as missing:
            print(f"{name}: not recorded: {missing}", file=sys.stderr)
    with ThreadPoolExecutor(len(clients) or 1) as pool:
        recordings = pool.map(lambda name: record(clients[name], sessions[name]), clients)
        for name, recording in zip(clients, recordings, strict=True):
            write(sessions[name], recording)
            print(f"{name}: {len(recording.rows)} lines of {recording.client}")


if __name__ == "__main__":
    main(sys.argv[1:])
