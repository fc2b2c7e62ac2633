"""Carries out the steps that only a Kafka Streams application knows: hosts, zones, new releases."""

from __future__ import annotations

from groupstorm.storms.plan import Plan
from groupstorm.storms.randomness import DRAW_BITS
from groupstorm.storms.stage import Process
from groupstorm.storms.steps import Step
from groupstorm.storms.streams.application import rack_name, rack_of
from groupstorm.storms.streams.world import StreamsWorld


class StreamsPlan(Plan):
    """The steps of a scenario whose processes are instances."""

    kind = "instance"

    def __init__(self, world: StreamsWorld) -> None:
        super().__init__(world)
        self._streams = world
        self._lost: dict[int, list[tuple[int, str]]] = {}

    def _lose(self, process: Process, do: str) -> None:
        self._told(do, process.name, "SIGKILL, and its disk is gone")
        process.crash()
        self._streams.lose_host(process.name)

    def _lose_host(self, step: Step) -> None:
        for process in self._chosen(step):
            self._lose(process, step.do)

    def _lose_zone(self, step: Step) -> None:
        """Whoever stands in the rack now; its brokers stay."""
        there = [
            instance
            for instance in self._streams.instances
            if rack_of(self.world.settings, instance.index) == rack_name(step.rack)
        ]
        self._told(step.do, None, f"{len(there)} instances in {rack_name(step.rack)} are lost")
        self._lost[step.rack] = [(instance.index, instance.name) for instance in there]
        for instance in there:
            self._lose(instance, step.do)

    def _restore_zone(self, step: Step) -> None:
        lost = self._lost.pop(step.rack, [])
        self._told(step.do, None, f"{len(lost)} instances start in {rack_name(step.rack)}, without state")
        for index, name in lost:
            delay_us = self._draw() * step.over_ms * 1000 >> DRAW_BITS
            self._spawn(index, name, delay_us + self._draw_us("start_ms"))

    def _rolling_upgrade(self, step: Step) -> None:
        self._streams.upgrade()
        self._rolling_restart(step)


StreamsPlan.does = {
    **Plan.does,
    "lose-host": StreamsPlan._lose_host,
    "lose-zone": StreamsPlan._lose_zone,
    "restore-zone": StreamsPlan._restore_zone,
    "rolling-upgrade": StreamsPlan._rolling_upgrade,
}
