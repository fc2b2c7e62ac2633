"""The journal that a running broker writes (`serve --data`), and what happens if the disk is full.

A client must not see an answer that a restart would forget. A broker whose journal cannot be written
therefore answers nothing more and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change, TopicCreated
from groupstorm.broker.data_directory import DataDirectory
from groupstorm.broker.restoring import created
from groupstorm.problems import OutputError

#: Makes a broker of the changes that an earlier one has written, and of the time in ms since 1970.
MakeBroker = Callable[[Sequence[Change], int], Broker]


class BrokerJournal:
    """Holds every change of one broker before anybody sees the change."""

    def __init__(
        self, folder: Path, on_failure: Callable[[], None], on_warning: Callable[[str], None]
    ) -> None:
        """``on_failure`` ends the broker; ``on_warning`` receives a line about a journal that was
        cut off at its end, or that stays long.

        Raises InputError if the folder cannot be used.
        """
        self._directory = DataDirectory(folder, on_warning)
        self._on_failure = on_failure
        self._on_warning = on_warning
        self._broker: Broker | None = None
        self._problem: OutputError | None = None

    def restart(self, make_broker: MakeBroker, now_ms: int) -> Broker:
        """Make the broker that goes on from the journal. The journal goes on too, with the topics that the
        broker has made now, unless a new one with the broker's state would be much shorter.

        Raises InputError if the journal is damaged, and OutputError.
        """
        changes = self._directory.read()
        self._broker = make_broker(changes, now_ms)
        topics = self._broker.state.topics
        if self._directory.go_on(sum(log.size_bytes for topic in topics for log in topic.partitions)):
            kept = {one.topic_id for one in changes if isinstance(one, TopicCreated)}
            made = [created(topic) for topic in topics if topic.topic_id not in kept]
            if made:
                self._directory.append(made)
        else:
            self._directory.rewrite(self._broker.snapshot())
        return self._broker

    def add(self, changes: Sequence[Change]) -> bool:
        """Write the changes of one step; False: the step must not be answered."""
        if self._problem is not None:
            return False
        try:
            self._directory.append(changes)
        except OutputError as problem:
            self._problem = problem
            self._on_failure()
            return False
        if self._directory.wants_rewriting:
            self._shorten()
        return True

    def _shorten(self) -> None:
        """The journal is complete as it is: if a shorter one cannot be written, the broker goes on."""
        assert self._broker is not None
        try:
            self._directory.rewrite(self._broker.snapshot())
        except OutputError as problem:
            self._directory.put_off_rewriting()
            self._on_warning(f"{problem}: the journal stays as long as it is")

    def close(self) -> None:
        self._directory.close()

    def check(self) -> None:
        """Raises OutputError if the broker has ended because its journal could not be written."""
        if self._problem is not None:
            raise OutputError(
                f"{self._problem}: the broker has ended; the journal holds all that was answered"
            )
