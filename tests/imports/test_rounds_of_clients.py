"""Rounds that clients' logs alone tell: when they began, which one a round continues, and what is none."""

from __future__ import annotations

from pathlib import Path

from tests.explain.explaining import explained
from tests.imports.importing import figures, generation, import_texts, java_line, rows
from tests.imports.test_comings import uuid

STICKY = "cooperative-sticky"


def line(second: float, message: str, client: str, instance: str = "") -> str:
    clock = f"10:{int(second) // 60:02}:{second % 60:06.3f}".replace(".", ",")
    return java_line(clock, message, client, instance)


def joined(
    second: float, client: str, number: int, process: int = 1, after_s: float = 0.002, instance: str = ""
) -> str:
    """It sends a JoinGroup, and is in a generation ``after_s`` later."""
    got = generation(number, f"{client}-{uuid(process)}", STICKY)
    text = line(second, "(Re-)joining group", client, instance)
    text += line(second + after_s, f"Successfully joined group with generation {got}", client, instance)
    return (
        text
        + line(second + after_s, f"Successfully synced group in generation {got}", client, instance)
        + line(second + after_s, f"Adding newly assigned partitions: {client}-0", client, instance)
    )


def asks(second: float, client: str, why: str) -> str:
    return line(second, f"Request joining group due to: {why}", client)


def started(second: float, client: str, instance: str = "") -> str:
    return line(second, "Subscribed to topic(s): t", client, instance)


def rebalances(folder: Path, *texts: str) -> list[tuple[str, int]]:
    """Causes of the rebalances, and how many rounds they had."""
    lines = sorted("".join(texts).splitlines(keepends=True), key=lambda text: text[:25])
    import_texts(folder, {"all.log": "".join(lines)})
    found = explained(folder / "out").history.rebalances
    return [(one.cause, len(one.rounds)) for one in found]


def test_static_members_that_come_back_are_in_no_round(tmp_path: Path) -> None:
    """The log begins after the generation: each is answered at once."""
    texts = [
        started(at, name, name) + joined(at, name, 7, instance=name) for at, name in ((1, "a"), (31, "b"))
    ]
    assert rebalances(tmp_path, *texts) == []
    assert explained(tmp_path / "out").history.rebalances_at_least == 0


def test_a_static_member_that_comes_back_replaces_its_former_process(tmp_path: Path) -> None:
    first = [started(0, name, name) + joined(0, name, 1, 1, 3, name) for name in "ab"]
    back = started(100, "a", "a") + joined(100, "a", 1, 2, instance="a") + started(200, "a", "a")
    assert len(rebalances(tmp_path, *first, back, joined(200, "a", 1, 3, instance="a"))) == 1
    replaced = [(row["member_id"], row["previous_member_id"]) for row in rows(tmp_path, "member_replaced")]
    ids = [f"a-{uuid(number)}" for number in (1, 2, 3)]
    assert replaced == [(ids[1], ids[0]), (ids[2], ids[1])]
    assert figures(tmp_path)["g"].rebalance_latency_max_ms == 3000


def test_static_members_that_wait_for_each_other_are_in_a_round(tmp_path: Path) -> None:
    texts = [started(0, name, name) + joined(0, name, 1, 1, 3, name) for name in "ab"]
    assert len(rebalances(tmp_path, *texts)) == 1


def test_a_round_begins_with_a_join_and_not_when_a_member_sees_why(tmp_path: Path) -> None:
    """The member joins when its application polls. That it was told shows the round begun."""
    first = [started(0, name) + joined(0, name, 1, after_s=3) for name in "ab"]
    again = asks(100, "a", "cached metadata has changed from (v1) to (v2)") + joined(400, "a", 2, after_s=1)
    told = asks(399.5, "b", "group is already rebalancing") + joined(400.5, "b", 2, after_s=0.5)
    rebalances(tmp_path, *first, again, told)
    one = explained(tmp_path / "out").history.rebalances[1]
    assert (one.begun_us, one.lasted_us) == (399_500_000, 1_500_000)


def test_a_member_that_has_revoked_begins_a_second_round(tmp_path: Path) -> None:
    first = [started(0, name) + joined(0, name, 1, after_s=3) for name in "ab"]
    second = started(60, "c") + joined(60, "c", 2, after_s=1)
    second += "".join(
        asks(60.5, name, "group is already rebalancing") + joined(60.5, name, 2, after_s=0.5) for name in "ab"
    )
    third = asks(61.1, "a", "need to revoke partitions and re-join") + joined(61.2, "a", 3, after_s=3)
    third += "".join(
        asks(64, name, "group is already rebalancing") + joined(64, name, 3, after_s=0.2) for name in "bc"
    )
    assert [rounds for _, rounds in rebalances(tmp_path, *first, second, third)] == [1, 2]


def test_a_member_that_revokes_and_then_joins_for_it_was_not_assigned_them_any_more(tmp_path: Path) -> None:
    revokes = line(60, "Revoke previously assigned partitions [a-0]", "a")
    for place, (why, cause) in enumerate(
        (
            ("need to revoke partitions and re-join", "assignment"),
            ("group is already rebalancing", "rebalance"),
        )
    ):
        folder = tmp_path / str(place)
        folder.mkdir()
        first = started(0, "a") + joined(0, "a", 1, after_s=3)
        rebalances(folder, first, revokes + asks(60, "a", why), joined(60.1, "a", 2, after_s=1))
        assert [row["cause"] for row in rows(folder, "partitions_revoked")] == [cause]
