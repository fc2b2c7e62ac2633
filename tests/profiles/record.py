"""Record the real clients anew: `python -m tests.profiles.record [PROFILE...]`, two minutes, all at once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.profiles.clients import CLIENTS, Client, Missing
from tests.profiles.recording import record, write


def main(profiles: list[str]) -> None:
    clients: dict[str, Client] = {}
    for profile in profiles or CLIENTS:
        try:
            clients[profile] = CLIENTS[profile]()
        except Missing as missing:
            print(f"{profile}: not recorded: {missing}", file=sys.stderr)
    with ThreadPoolExecutor(len(clients)) as pool:
        recordings = pool.map(record, clients.values())
        for profile, recording in zip(clients, recordings, strict=True):
            write(profile, recording)
            print(f"{profile}: {len(recording.rows)} lines")


if __name__ == "__main__":
    main(sys.argv[1:])
