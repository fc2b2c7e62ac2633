"""Dates are never lost in silence: in any form and order, beside a clock, or asked for."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from groupstorm.imports.importing import Options
from groupstorm.imports.lines import find_logs
from groupstorm.imports.parser import LogParser
from groupstorm.imports.times import instant, shown, zone
from groupstorm.problems import InputError
from tests.command import groupstorm
from tests.imports.importing import import_texts, rows

JOINED = "[Consumer clientId=c-1, groupId=g] (Re-)joining group"


def lines(*times: str) -> str:
    return "".join(f"{time} INFO {JOINED}\n" for time in times)


def began_and_ended(folder: Path, text: str, options: Options | None = None) -> list[str]:
    done = import_texts(folder, {"app.log": text}, options)
    return [shown(us, done.lacks) for us in (done.began_us, done.ended_us)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mar 5, 2026 @ 00:00:01.100", "2026-03-05 00:00:01.100"),
        ("March 5th 2026, 00:00:01.100", "2026-03-05 00:00:01.100"),
        ("26-03-04 10:00:06.371", "2026-03-04 10:00:06.371"),
        ("19/07/12 11:01:54", "2019-07-12 11:01:54.000"),
        ("04/Mar/2026:10:00:06 +0200", "2026-03-04 08:00:06.000"),
        ("2019 Apr 10 07:43:54", "2019-04-10 07:43:54.000"),
        ("2026-03-04,10:00:06.371", "2026-03-04 10:00:06.371"),
        ("1772618406371", "2026-03-04 10:00:06.371"),
        ("1772618406.371", "2026-03-04 10:00:06.371"),
        ("2026-03-04 10:00:06 UTC", "2026-03-04 10:00:06.000"),
        ("Wed Mar  4 10:00:06 UTC 2026", "2026-03-04 10:00:06.000"),
        ("Wed Mar  4 01:00:06 PM CET 2026", "2026-03-04 13:00:06.000"),
        ("20260304 10:00:06,371", "2026-03-04 10:00:06.371"),
    ],
)
def test_a_form(text: str, expected: str, tmp_path: Path) -> None:
    said = instant(text)
    assert said is not None
    assert (shown(said.us), said.lacks) == (expected, "")
    assert began_and_ended(tmp_path, lines(text))[0] == expected


@pytest.mark.parametrize(
    ("times", "began", "assumed"),
    [
        (["04/03/2026 10:00:06"], "2026-03-04 10:00:06.000", "dmy"),
        (["04.03.2026 10:00:06"], "2026-03-04 10:00:06.000", "dmy"),
        (["04/03/2026 10:00:06", "04/13/2026 10:00:06"], "2026-04-03 10:00:06.000", ""),
        (["04/03/2026 10:00:06", "13/03/2026 10:00:06"], "2026-03-04 10:00:06.000", ""),
        (["2026-04-03T10:00:09Z 04/03/2026 10:00:06"], "2026-04-03 10:00:06.000", ""),
        (["4/3/2026, 1:00:06 PM"], "2026-04-03 13:00:06.000", "mdy"),
        (["04/03/26 10:00:06"], "2026-03-04 10:00:06.000", "dmy"),
        (["26-03-04 10:00:06"], "2026-03-04 10:00:06.000", ""),
    ],
)
def test_the_order_of_a_days_numbers(times: list[str], began: str, assumed: str, tmp_path: Path) -> None:
    done = import_texts(tmp_path, {"app.log": lines(*times)})
    assert shown(done.began_us) == began
    assert done.logs[0].clock.assumed_order == assumed


@pytest.mark.slow
def test_the_command_says_an_order_that_it_assumes(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(lines("04/03/2026 10:00:06"))
    printed = groupstorm("import", "app.log", "--out", "out", cwd=tmp_path).stdout
    assert "its dates are taken as day-month-year" in " ".join(printed.split())


@pytest.mark.slow
def test_clocks_alone_are_shown_as_such(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(lines("23:59:58.000", "00:00:01.500"))
    printed = groupstorm("import", "app.log", "--out", "out", cwd=tmp_path)
    assert "from 23:59:58.000 to 00:00:01.500 UTC" in printed.stdout
    assert "The date is not known" in printed.stdout
    assert "--date" in printed.stdout
    written = json.loads((tmp_path / "out" / "import.json").read_text())
    assert [written["began"], written["logs"][0]["not_stated"]] == ["23:59:58.000", "date"]
    told = groupstorm("trace", "out", cwd=tmp_path).stdout + groupstorm("explain", "out", cwd=tmp_path).stdout
    for text in (printed.stdout, told, str(written), (tmp_path / "out" / "trace.jsonl").read_text()):
        assert "1970" not in text
        assert "1972" not in text


def test_seconds_since_a_program_began(tmp_path: Path) -> None:
    """logrus on a terminal: the group was asked to join after 51 and after 98 seconds."""
    text = "".join(f"INFO[{seconds:04d}] {JOINED}\n" for seconds in (51, 98))
    assert began_and_ended(tmp_path, text) == ["00:00:51.000", "00:01:38.000"]


def test_a_date_that_is_given(tmp_path: Path) -> None:
    days = Options(days={"": date(2026, 3, 4)})
    passing = lines("23:59:58.000", "00:00:01.500")
    assert began_and_ended(tmp_path, passing, days) == ["2026-03-04 23:59:58.000", "2026-03-05 00:00:01.500"]
    newest_first = lines("00:00:01.500", "23:59:58.000", "23:59:57.000")
    assert began_and_ended(tmp_path, newest_first, days)[0] == "2026-03-03 23:59:57.000"
    quiet = lines("08:00:00", "21:30:00", "07:00:00")
    assert began_and_ended(tmp_path, quiet, days)[1] == "2026-03-05 07:00:00.000"
    years = lines("Dec 31 23:59:59", "Jan  1 00:00:01")
    assert began_and_ended(tmp_path, years, days) == ["2026-12-31 23:59:59.000", "2027-01-01 00:00:01.000"]


def test_a_year_that_glog_does_not_print(tmp_path: Path) -> None:
    text = lines("I0304 10:00:06.371000     12 app.cc:7]")
    assert began_and_ended(tmp_path, text) == ["03-04 10:00:06.371"] * 2


@pytest.mark.parametrize("step", [1, -1])
def test_the_hour_that_a_clock_goes_through_twice(step: int, tmp_path: Path) -> None:
    """In Berlin 02:59:59 is followed by 02:00:00 when summer time ends. One line is written late."""
    clocks = ("01:59:59", "02:10:05", "02:10:00", "02:59:58", "02:00:01", "02:30:00", "03:00:00")
    (tmp_path / "app.log").write_text(lines(*(f"2026-10-25 {clock}.000" for clock in clocks[::step])))
    (log,) = find_logs([str(tmp_path / "app.log")])
    read = [*LogParser(log, 0, zone("z", "Europe/Berlin")).observations()]
    seconds = [(one.time_us - min(read).time_us) // 1_000_000 for one in read]
    assert seconds[::step] == [0, 606, 601, 3_599, 3_602, 5_401, 7_201]


def test_a_date_beside_a_clock(tmp_path: Path) -> None:
    collected = lines("2026-03-05T00:00:00.100Z 23:59:59.900")
    assert began_and_ended(tmp_path, collected)[0] == "2026-03-04 23:59:59.900"
    before = lines("2026-03-04 10:00:00", "10:00:01")
    assert began_and_ended(tmp_path, before)[1] == "2026-03-04 10:00:01.000"
    columns = f'"2026-03-04","INFO","10:00:06.371","{JOINED}"\n'
    assert began_and_ended(tmp_path, columns)[0] == "2026-03-04 10:00:06.371"


def test_a_log_without_a_date_beside_others(tmp_path: Path) -> None:
    logs = {"a.log": lines("2026-03-04 10:00:00"), "b.log": lines("10:00:01")}
    with pytest.raises(InputError, match=r"b.log: its times have no date, .* --date '.*b.log=2026-01-31'"):
        import_texts(tmp_path, logs)
    done = import_texts(tmp_path, logs, Options(days={str(tmp_path / "b.log"): date(2026, 3, 4)}))
    assert shown(done.ended_us) == "2026-03-04 10:00:01.000"
    assert rows(tmp_path)


@pytest.mark.slow
def test_what_is_no_date(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(lines("10:00:01"))
    refused = groupstorm("import", "app.log", "--out", "out", "--date", "4 March", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--date: '4 March' is no date: expected one as 2026-01-31" in refused.stderr


@pytest.mark.slow
def test_lines_not_understood_are_shown_although_the_import_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(lines("10:00:01").replace("(Re-)joining group", "Jumping around"))
    refused = groupstorm("import", "app.log", "--out", "out", "--unknown", cwd=tmp_path)
    assert refused.returncode == 2
    assert "app.log:1: Jumping around" in refused.stdout
    assert "1 line of Kafka's not understood (--unknown)" in refused.stderr
    (tmp_path / "app.log").write_text("2026-03-04 10:00:01 INFO starting\n")
    refused = groupstorm("import", "app.log", "--out", "out", "--unknown", cwd=tmp_path)
    assert refused.stdout == "No line looks like Kafka's.\n"
