"""Random scripts of consumer groups and of migrations: a function of a seed and a number."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tests.oracle.scripts.group_moves import MOVES
from tests.oracle.scripts.groups import Play
from tests.oracle.scripts.steps import draw_options

Script = dict[str, Any]


class Mixture(NamedTuple):
    """``weight``: how often; ``moves``: their weights; shares are between 0 and 1."""

    weight: int
    moves: dict[str, int]
    classic_share: float = 0.0
    static_share: float = 0.3
    #: How often a restart changes the protocol.
    switching: float = 0.0
    append_error_share: float = 0.0


_BASIC = {"arrive": 6, "settle": 12, "round": 8, "beat": 8, "wait": 3}

CONSUMER = (
    Mixture(20, _BASIC | {"leave": 4, "subscribe": 6, "restart": 3, "commit": 4, "fetch": 2}),
    Mixture(12, _BASIC | {"leave_for_a_while": 10, "restart": 8, "leave": 3, "stray": 3}, static_share=0.9),
    Mixture(12, _BASIC | {"subscribe": 16, "topics": 8, "prefer": 6, "wait": 6}),
    Mixture(12, _BASIC | {"commit": 16, "fetch": 6, "subscribe": 4, "topics": 3}),
    Mixture(12, _BASIC | {"wait": 8, "wait_with_beats": 8, "options": 6, "leave": 3}),
    Mixture(10, _BASIC | {"stray": 20, "classic_stray": 5}, static_share=0.5),
    Mixture(12, dict.fromkeys(MOVES, 3) | _BASIC, static_share=0.5),
    Mixture(6, _BASIC | {"leave": 5, "subscribe": 6, "commit": 4}, append_error_share=0.06),
)

MIGRATION = (
    Mixture(20, _BASIC | {"restart": 14, "leave": 4, "commit": 2}, 0.7, 0.3, 0.7),
    Mixture(14, _BASIC | {"restart": 14, "leave_for_a_while": 4, "leave": 3}, 0.6, 0.9, 0.8),
    Mixture(12, _BASIC | {"leave": 10, "arrive": 10, "leave_many": 4, "wait": 4}, 0.6, 0.4, 0.5),
    Mixture(12, _BASIC | {"wait": 8, "wait_with_beats": 8, "restart": 6}, 0.7, 0.3, 0.5),
    Mixture(10, _BASIC | {"stray": 6, "classic_stray": 14, "restart": 6}, 0.6, 0.5, 0.5),
    Mixture(
        10, _BASIC | {"subscribe": 10, "topics": 6, "restart": 6, "commit": 5, "fetch": 3}, 0.6, 0.4, 0.5
    ),
    Mixture(12, dict.fromkeys(MOVES, 3) | _BASIC, 0.5, 0.5, 0.5),
    Mixture(6, _BASIC | {"restart": 8, "leave": 5}, 0.6, 0.5, 0.6, append_error_share=0.05),
)

#: Kinds of script by the names that the command has for them.
KINDS = {"consumer": CONSUMER, "migration": MIGRATION}


def random_group_script(kind: str, seed: int, number: int) -> Script:
    """The ``number``-th script of ``seed`` of this kind: `{"id", "config", "steps"}`."""
    generator = random.Random(f"{kind}:{seed}:{number}")  # a text is hashed the same way everywhere
    mixtures = KINDS[kind]
    mixture = generator.choices(mixtures, [mixture.weight for mixture in mixtures])[0]
    play = Play(generator, _config(generator, kind), mixture.append_error_share)
    play.switching = mixture.switching
    for number_of in range(1, generator.randint(1, 6) + 1):
        is_classic = generator.random() < mixture.classic_share
        play.members.append(play.member(number_of, is_classic=is_classic, static_share=mixture.static_share))
    names = list(mixture.moves)
    chosen = generator.choices(names, list(mixture.moves.values()), k=generator.randint(4, 18))
    for name in ["arrive", "settle", *chosen]:
        MOVES[name](play)
    return {"id": f"{kind}-{seed}-{number}", "config": play.config, "steps": play.steps}


def _config(generator: random.Random, kind: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "topics": {name: generator.randint(1, 7) for name in ("foo", "bar", "baz")},
        "group.initial.rebalance.delay.ms": generator.choice([0, 0, 3_000]),
    }
    policies = ["bidirectional", "upgrade", "downgrade", "disabled"]
    return config | draw_options(
        generator,
        {
            "group.consumer.assignment.interval.ms": (0.7, [0, 0, 500, 1_000, 5_000]),
            "group.consumer.max.size": (0.2, [1, 2, 3]),
            "group.max.size": (0.2, [1, 2, 3]),
            "group.consumer.assignors": (0.2, ["uniform", "range", "range,uniform"]),
            "group.consumer.session.timeout.ms": (0.2, [50_000, 60_000]),
            "group.consumer.migration.policy": (0.5 if kind == "migration" else 0.2, policies),
            "group.consumer.regex.refresh.interval.ms": (0.2, [10_000, 20_000]),
            "racks": (0.2, True),
            "groups": (0.1, {"g": {"consumer.session.timeout.ms": "50000"}}),
        },
    )
