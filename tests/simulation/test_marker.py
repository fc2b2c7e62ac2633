"""The marker of the pytest plugin: a test with the argument `world` runs in virtual time."""

from __future__ import annotations

import pytest

from tests.command import PLUGIN

pytest_plugins = ["pytester"]


@pytest.mark.slow
def test_a_marked_test_runs_under_its_schedules(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time
        import pytest

        SEEN = []

        @pytest.fixture
        def number():
            return 17

        @pytest.mark.groupstorm(time="virtual", schedules=3, seed=7, topics={"orders": 2})
        async def test_three_worlds(world, number):
            before = time.monotonic()
            await world.run_for(200)
            assert number == 17
            assert not world.instances
            assert time.monotonic() - before >= 200

        @pytest.mark.groupstorm(time="virtual", seed=4, failures=[])
        async def test_fails(world):
            await world.run_for(5)
            assert False, "no luck"

        @pytest.mark.groupstorm(time="virtual", schedules=2, failures=[])
        async def test_fails_in_words_of_pytest(world):
            with pytest.raises(ValueError):
                await world.run_for(6)

        @pytest.mark.groupstorm(time="virtual", schedules=2, failures=[])
        async def test_is_skipped(world):
            pytest.skip("not today")

        @pytest.mark.groupstorm(time="virtual")
        def test_is_not_async(world):
            pass

        @pytest.mark.groupstorm(time="virtual", control=True)
        async def test_unknown_argument(world):
            pass

        def test_has_no_marker(world):
            pass
        """
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=4, skipped=1, errors=1)
    result.stdout.fnmatch_lines_random(
        [
            "*seed 4 fails after 5.0*no luck*",
            "*seed 0 fails after 6.0*DID NOT RAISE ValueError*",
            "*expected an async test*",
            "*no argument control; there are seed, schedules, *",
            "*mark the test with*",
        ]
    )


@pytest.mark.slow
def test_an_option_says_how_many_schedules_there_are(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.groupstorm(time="virtual", schedules=2)
        async def test_worlds(world):
            with open("worlds", "a") as worlds:
                worlds.write("a world\\n")
        """
    )
    options = (*PLUGIN, "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*options, "--schedules=5").assert_outcomes(passed=1)
    # a run without failures comes first, and the last schedule runs once more, in the test's own process
    assert len((pytester.path / "worlds").read_text("utf-8").splitlines()) == 7
    result = pytester.runpytest_subprocess(*options, "--schedules=0")
    result.stdout.fnmatch_lines(["*schedules: 0: expected*"])
