"""Arguments as people write them in tests, as the broker wants them."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.problems import InputError

#: A value of one of Kafka's settings: True is "true", 0 is "0".
Setting = str | int | float | bool


def as_settings(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Kafka's texts. Raises InputError for a value that is none of a setting."""
    texts = {}
    given: Mapping[str, object] = settings  # whatever people write
    for name, value in given.items():
        if not isinstance(value, Setting):
            raise InputError(f"settings: {name}: {value!r}: expected a text, a number, True or False")
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def as_topics(topics: Mapping[str, int]) -> dict[str, int]:
    """Name -> partitions. Raises InputError for a number of partitions that is no number."""
    given: Mapping[str, object] = topics
    for name, partitions in given.items():
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise InputError(f"topics: {name}: {partitions!r}: expected the number of its partitions")
    return dict(topics)
