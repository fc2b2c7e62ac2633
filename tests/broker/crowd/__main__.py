"""`python -m tests.broker.crowd`: a broker's memory and a healthy client's latency beside bad ones."""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import threading
from collections.abc import Awaitable

from tests.broker.crowd import clients
from tests.broker.crowd.clients import Address, Client, connect
from tests.broker.test_serve import serving


def main() -> int:
    """Prints a line per sort of client."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.crowd", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of clients, groups, topics")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with serving("--topic", "orders:1") as (process, address):
        assert process.stderr is not None
        # a log that nobody reads would block the broker as soon as the pipe is full
        threading.Thread(target=process.stderr.read, daemon=True).start()
        asyncio.run(measure(process.pid, address, options.scale))
    return 0


async def measure(process: int, address: Address, scale: float) -> None:
    """One sort of clients after the other; each leaves before the next one comes."""
    healthy = await Client.connected(address)
    print(f"{'':<52}{'MiB before':>11}{'MiB':>7}{'median ms':>11}{'longest ms':>12}")

    async def beside(what: str, act: Awaitable[object]) -> None:
        before_mib = clients.rss_mib(process)
        median_s, longest_s, _ = await clients.slowest_answer_s(healthy, act)
        figures = f"{median_s * 1000:>11.1f}{longest_s * 1000:>12.1f}"
        print(f"{what:<52}{before_mib:>11.0f}{clients.rss_mib(process):>7.0f}{figures}", flush=True)

    async def leave(crowd: list[Client]) -> None:
        for one in crowd:
            one.writer.close()
        while clients.open_files(process) > files:
            await asyncio.sleep(0.05)

    await beside("alone", asyncio.sleep(1))
    files = clients.open_files(process)
    idle: list[Client] = []

    async def connect_idle() -> None:
        idle.extend(await connect(address, int(5_000 * scale)))

    await beside(f"{int(5_000 * scale):,} connections, idle", connect_idle())
    await leave(idle)
    await clients.fill(healthy, 40, 1_000_000)
    crowd = await connect(address, int(100 * scale))
    await beside(
        f"{len(crowd)} ask for 40 answers of 1 MB, read none", clients.ask_and_never_read(crowd, 1_000_000)
    )
    await leave(crowd)
    crowd = await connect(address, int(500 * scale))
    await beside(f"{len(crowd)} send a byte a second", clients.send_bytes_one_by_one(crowd, 1.0, 5))
    await leave(crowd)
    crowd = await connect(address, int(20 * scale))
    await beside(f"{len(crowd)} announce 64 MB and send 1 MB", clients.announce(crowd, 64_000_000, 1_000_000))
    await leave(crowd)
    crowd = await connect(address, int(20 * scale))
    await beside(f"{len(crowd)} announce 2 GB", clients.announce(crowd, 2**31 - 1, 0))
    closed = await asyncio.gather(*(one.is_closed_by_server() for one in crowd))
    print(f"  of these the broker has closed {sum(closed)}")
    await leave(crowd)
    other = await Client.connected(address)
    await beside(f"{int(10_000 * scale):,} groups", clients.make_groups(other, int(10_000 * scale)))
    await beside(f"{int(100_000 * scale):,} topics", clients.make_topics(other, int(100_000 * scale)))


if __name__ == "__main__":
    sys.exit(main())
