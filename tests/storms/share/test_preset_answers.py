"""The sentences with which comparisons of the presets of share groups end, against arithmetic by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from groupstorm.figures import Figures
from groupstorm.verdicts.comparison import compare_sentences
from tests.storms.storms_in_memory import storm

Runs = Mapping[str, Sequence[Figures]]


def runs_of(preset: str, *variants: str, **settings: Any) -> Runs:
    return {one: [storm(preset, 1, one, settings=settings).figures] for one in variants}


def test_share_or_partition_says_how_many_consumers_the_load_takes() -> None:
    """3 records a second of 1.5 s each keep 4.5 consumers busy: five are needed. The three that own the
    partitions of a consumer group do two records a second of three."""
    runs = runs_of(
        "share-or-partition", "consumer-group", "share-group", members=8, partitions=3, process_ms=1500
    )
    said = compare_sentences(runs)
    assert any(
        "consumer-group: the group cannot keep up (at the end the lag still grew by 1.1 records a" in one
        for one in said
    )
    (takes,) = [one for one in said if "share-group kept" in one]
    assert takes.startswith(
        "share-group kept 4.5 consumers busy in the mean: that takes 5 consumers at least"
    )
    assert any(one.startswith("What a share group loses is the order: consumer-group") for one in said)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (4, "the lag grew, and it takes more than that"),
        (10, "others worked on records whose locks had ended, and this does not say how many it takes"),
    ],
)
def test_a_share_group_that_cannot_keep_up_is_not_given_a_number_of_consumers(
    records: int, said: str
) -> None:
    """Three records a second of 3 s each are work for nine; six consumers do two of the three. Ten records
    take as long as their locks."""
    settings = {"members": 6, "partitions": 3, "process_ms": 3000, "max.poll.records": records}
    sentences = compare_sentences(runs_of("share-or-partition", "share-group", **settings))
    (takes,) = [one for one in sentences if "share-group kept" in one]
    assert takes.endswith(f"consumers busy in the mean: {said}.")


@pytest.mark.slow
def test_batches_that_end_unevenly_are_no_lag_that_grows() -> None:
    """6 records a second of 1 s each keep 6 of 12 consumers busy, and 1 with what is delivered again. Behind
    batches of ten the second half of this run does 0.1 records a second less than arrive."""
    figures = storm("share-deploy", 2, "implicit").figures
    assert 0 < (figures.lag_growth_per_second or 0) < 0.2
    (takes,) = [one for one in compare_sentences({"implicit": [figures]}) if "implicit kept" in one]
    assert "6.1 consumers busy in the mean: that takes 7 consumers at least" in takes


@pytest.mark.slow
def test_share_deploy_says_how_often_records_are_delivered_again() -> None:
    """Each of 12 consumers closes once. It holds ten records at most, and gives back all of them with
    implicit acknowledgement, those that are not done with explicit; one at most with polls of one."""
    runs = runs_of("share-deploy", "implicit", "explicit", "one-by-one")
    (again,) = [one for one in compare_sentences(runs) if one.startswith("Deliveries of a record beyond")]
    said = re.fullmatch(
        r"Deliveries of a record beyond its first: (\d+) under implicit, (\d+) under explicit, "
        r"(\d+) under one-by-one\.",
        again,
    )
    assert said is not None, again
    implicit, explicit, alone = map(int, said.groups())
    assert 12 * 10 >= implicit > explicit > alone
    assert alone <= 12
    assert all((run.records_duplicated or 0) % 10 == 0 for run in runs["implicit"])


@pytest.mark.slow
def test_poison_says_how_often_it_was_delivered_and_where_it_ended() -> None:
    """A record that is released each time is delivered up to the limit, one that is rejected once."""
    names = ("released", "released-limit-10", "rejected-to-a-dead-letter-queue")
    said = compare_sentences(runs_of("poison-in-a-share-group", *names))
    assert (
        "Deliveries of a record beyond its first: 4 under released, 9 under released-limit-10, "
        "0 under rejected-to-a-dead-letter-queue." in said
    )
    lost = "1 record (lost, without a dead letter queue; delivered up to"
    assert (
        f"Given up: {lost} 5 times) under released, {lost} 10 times) under released-limit-10, 1 record (in "
        "the dead letter queue; delivered once) under rejected-to-a-dead-letter-queue." in said
    )
    # the other figures are alike: what decides is that a queue has the record
    assert said[0].startswith("Best by ")
    assert said[0].endswith(": rejected-to-a-dead-letter-queue.")


def test_poison_that_takes_its_record_batch_along_is_said() -> None:
    """A record that kills its consumers: the nine beside it in the batch are delivered as often, and given up
    with it at a limit of two."""
    settings = {"group.share.delivery.count.limit": 2}
    said = compare_sentences(runs_of("poison-in-a-share-group", "crashes", **settings))
    assert (
        "Given up: 10 records (lost, without a dead letter queue; delivered up to 2 times) under crashes."
        in said
    )


@pytest.mark.slow
def test_share_locks_says_what_a_hung_consumer_keeps_from_the_others() -> None:
    """It keeps one poll() of records until their locks end: 10 or 50 records for 30 s, or 10 for 15 s."""
    names = ("fifty-at-a-time", "ten-at-a-time", "locks-of-fifteen-seconds")
    runs = runs_of("share-locks", *names)
    assert (
        "Time that locks kept records from others: locks-of-fifteen-seconds 150 s, ten-at-a-time 300 s "
        "(2.0 times), fifty-at-a-time 25 min (10 times)." in compare_sentences(runs)
    )


def test_a_burst_does_not_say_how_many_consumers_it_takes() -> None:
    """With 500 records a poll eight consumers lock 2 x 2,000 records: no more can be busy."""
    said = compare_sentences(runs_of("share-locks", "five-hundred-at-a-time", record_rate=1000))
    (takes,) = [one for one in said if "five-hundred-at-a-time kept" in one]
    assert takes.endswith("so many records waited at times that this does not say how many it takes.")
