"""`./dev oracle history`: Kafka's own answers to the histories of its assignors' bugs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupstorm.assignors.check.history import play
from tests.oracle.releases import ReleaseJvm
from tools.historical_assignors.bug_histories import FOLDER, OURS, BugHistory, load, names
from tools.historical_assignors.comparison import Recorded, recorded, side
from tools.historical_assignors.released import COOPERATIVE_STICKY, Case, ReleasedAssignor, version_of

#: KIP-429.
COOPERATIVE_SINCE = (2, 4)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="which histories (all)")
    parser.add_argument("--write-golden", action="store_true", help="keep the answers as recordings")
    parser.add_argument(
        "--release",
        action="append",
        help="instead: in which releases is a history's property broken? (repeatable)",
    )


def run(options: argparse.Namespace) -> int:
    """0: Kafka's classes answered as was recorded, or the recordings were written; 1: they did not."""
    stories = [load(name) for name in options.names or names()]
    if options.release:
        for release in options.release:
            tell_release(release, stories)
        return 0
    different = 0
    for story in stories:
        name = story.name
        asked = [told for release in releases(story) for told in ask(story, release)]
        if options.write_golden:
            lines = [json.dumps(told._asdict(), ensure_ascii=False) + "\n" for told in asked]
            (FOLDER / f"{name}.jsonl").write_text("".join(lines), "utf-8")
            print(f"{name}: {len(asked)} answers written")
        else:
            same = asked == recorded(name)
            different += not same
            print(f"{name}: {len(asked)} answers, {'as recorded' if same else 'NOT as recorded'}")
    return 1 if different else 0


def tell_release(release: str, stories: Sequence[BugHistory]) -> None:
    """Print how the stories go with the classes of a release that has their assignors."""
    print(f"Kafka {release}")
    with ReleaseJvm(release) as jvm:
        for story in stories:
            if story.assignor == COOPERATIVE_STICKY and version_of(release) < COOPERATIVE_SINCE:
                continue
            played = side(story, ReleasedAssignor(story.assignor, release, jvm), release)
            print(f"  {story.name}: {'held' if played.broken is None else played.broken[1]}")


def releases(story: BugHistory) -> list[str]:
    """Return the releases of Kafka whose answers a story needs."""
    return [release for release in (story.before, story.after) if release is not None and release != OURS]


def ask(story: BugHistory, release: str) -> Iterator[Recorded]:
    """Play the story with the classes of a release, and what they were asked and answered."""
    with ReleaseJvm(release) as jvm:
        told: list[Recorded] = []

        def answer(case: Case) -> Mapping[str, Any]:
            told.append(Recorded(release, case, jvm(case)))
            return told[-1].answer

        for _ in play(ReleasedAssignor(story.assignor, release, answer), story.history):
            pass
    yield from told
