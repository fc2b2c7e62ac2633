"""The page in Chromium: it draws, it answers to pointer, keys and filters, and no script fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import PATIENCE_S, browser, problems
from tests.command import groupstorm

pytestmark = pytest.mark.slow

SMALL = ["--set", "members=5", "--set", "partitions=20", "--set", "start_ms=7s", "--set", "ready_ms=500"]
MANY = ["--set", "members=42", "--set", "partitions=84"]
#: The colours of a canvas in a row of its middle, as the browser has drawn them.
COLOURS = """
const canvas = [...document.querySelectorAll("canvas[data-lane=" + arguments[0] + "]")][arguments[1]];
const pen = canvas.getContext("2d");
const found = new Set();
for (let y = 1; y < canvas.height; y += 3) {
  const row = pen.getImageData(0, y, canvas.width, 1).data;
  for (let n = 0; n < row.length; n += 4) found.add([row[n], row[n + 1], row[n + 2]].join());
}
return [...found];
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    variants = ["--variant", "eager", "--variant", "static"]
    commands = [
        ["compare", "rolling-deploy", *SMALL, *variants, "--out", "both"],
        ["report", "both", "-o", "both.html"],
        [
            "sweep",
            "rolling-deploy",
            *SMALL,
            "--over",
            "session.timeout.ms=10s,20s,30s",
            "--seeds",
            "2",
            "--out",
            "s",
        ],
        ["report", "s", "-o", "sweep.html"],
        ["run", "rolling-deploy", "--variant", "consumer", *SMALL[4:], *MANY, "--out", "many"],
        ["report", "many", "-o", "many.html"],
        ["run", "deploy-and-crash", "--variant", "consumer", *SMALL, "--out", "crash"],
        ["report", "crash", "-o", "crash.html"],
    ]
    for command in commands:
        ran = groupstorm(*command, cwd=folder)
        assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("driver") / "log") as driver:
        yield driver


def opened(chrome: Any, file: Path) -> Any:
    from selenium.webdriver.support.wait import WebDriverWait

    chrome.get_log("browser")
    chrome.get(file.as_uri())
    ready = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(chrome, PATIENCE_S).until(lambda driver: driver.execute_script(ready))
    return chrome


def seen(chrome: Any) -> tuple[float, float]:
    found = chrome.execute_script("return [scene.from, scene.to]")
    return found[0], found[1]


def frame_drawn(chrome: Any) -> None:
    chrome.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


def rgb(colour: str) -> str:
    return ",".join(str(int(colour[n : n + 2], 16)) for n in (1, 3, 5))


def test_both_variants_are_drawn_and_no_script_fails(chrome: Any, pages: Path) -> None:
    from groupstorm.report.page.palette import LIGHT, OWNERS_LIGHT

    opened(chrome, pages / "both.html")
    assert chrome.title.startswith("What does a rolling deploy cost")
    for run in (0, 1):
        found = set(chrome.execute_script(COLOURS, "partitions", run))
        assert {rgb(colour) for colour in OWNERS_LIGHT[:5]} <= found
        assert rgb(LIGHT["gap"]) in found
        assert rgb(LIGHT["owns"]) in set(chrome.execute_script(COLOURS, "members", run))
    assert problems(chrome) == []


def test_a_member_has_the_colour_of_its_partitions_beside_its_name(chrome: Any, pages: Path) -> None:
    from groupstorm.report.page.palette import OWNERS_LIGHT

    opened(chrome, pages / "both.html")
    marks = chrome.execute_script(
        """
        const lane = scene.lanes.find((one) => one.kind === "members");
        const pen = lane.canvas.getContext("2d");
        const high = lane.canvas.height / lane.rows.length;
        const at = Math.round((LEFT - 8) * (window.devicePixelRatio || 1));
        const middles = lane.rows.map((row, place) => Math.round((place + 0.5) * high));
        return middles.map((middle) => [...pen.getImageData(at, middle, 1, 1).data]);
        """
    )
    assert [",".join(map(str, mark[:3])) for mark in marks] == [rgb(colour) for colour in OWNERS_LIGHT[:5]]


def test_nothing_is_loaded(chrome: Any, pages: Path) -> None:
    opened(chrome, pages / "both.html")
    assert chrome.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_worst_gap_is_shown_and_told(chrome: Any, pages: Path) -> None:
    opened(chrome, pages / "both.html")
    chrome.find_element("xpath", "//button[text()='Worst gap']").click()
    frame_drawn(chrome)
    said = chrome.find_element("id", "said").text
    worst = chrome.execute_script(
        "const {partition, from, to, before} = gapsSeen()[0]; return {partition, from, to, before}"
    )
    assert said.startswith("Gap 1 of ")
    assert worst["partition"] in said
    assert f": {worst['before']} had it; " in said  # it may as well have died
    begin, end = seen(chrome)
    assert begin <= worst["from"]
    assert worst["to"] <= end
    assert end - begin < 4 * (worst["to"] - worst["from"]) + 1


def test_the_rebalance_of_a_gap_is_the_one_that_ended_it(chrome: Any, pages: Path) -> None:
    """A crashed member is back before its session ends: its partitions wait for the second rebalance."""
    opened(chrome, pages / "crash.html")
    chrome.execute_script("gapPlace = gapsSeen().findIndex((gap) => gap.seconds > 40) - 1; showGap(1)")
    assert "Rebalance: session-expired" in chrome.find_element("id", "said").text


def test_keys_zoom_and_go_back(chrome: Any, pages: Path) -> None:
    opened(chrome, pages / "both.html")
    whole = seen(chrome)
    body = chrome.find_element("tag name", "body")
    body.send_keys("+")
    closer = seen(chrome)
    assert closer[1] - closer[0] == pytest.approx(0.6 * (whole[1] - whole[0]))
    body.send_keys("r")
    assert "rebalance at" in chrome.find_element("id", "said").text
    body.send_keys("0")
    assert seen(chrome) == whole


def test_dragging_zooms_and_the_pointer_tells_the_owner(chrome: Any, pages: Path) -> None:
    from selenium.webdriver import ActionChains

    opened(chrome, pages / "both.html")
    lane = chrome.find_element("css selector", "canvas[data-lane=partitions]")
    chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", lane)
    ActionChains(chrome).move_to_element(lane).perform()
    tip = chrome.find_element("id", "tip").text
    assert "topic-0-" in tip
    assert "owner" in tip
    ActionChains(chrome).move_to_element_with_offset(lane, -100, 0).click_and_hold().move_by_offset(
        150, 0
    ).release().perform()
    begin, end = seen(chrome)
    whole = chrome.execute_script("return scene.span")
    width = lane.size["width"] - 118 - 14
    assert end - begin == pytest.approx(whole * 150 / width, rel=0.03)


def test_filters_choose_partitions_members_and_runs(chrome: Any, pages: Path) -> None:
    opened(chrome, pages / "both.html")
    rows = "return scene.lanes.filter((lane) => lane.kind === arguments[0]).map((lane) => lane.rows.length)"
    assert chrome.execute_script(rows, "partitions") == [20, 20]
    chrome.find_element("id", "partition").send_keys("topic-0-1")
    frame_drawn(chrome)
    assert chrome.execute_script(rows, "partitions") == [11, 11]
    chrome.find_element("id", "member").send_keys("member-3")
    frame_drawn(chrome)
    assert chrome.execute_script(rows, "members") == [1, 1]
    chrome.find_element("css selector", "input[data-run=eager]").click()
    assert not chrome.find_element("css selector", "section[data-name=eager]").is_displayed()
    chrome.find_element("css selector", "input[data-kind=members]").click()
    assert not chrome.find_element(
        "css selector", "section[data-name=static] canvas[data-lane=members]"
    ).is_displayed()
    assert problems(chrome) == []


def test_of_many_rows_those_are_drawn_that_lost_most_and_the_others_are_told(
    chrome: Any, pages: Path
) -> None:
    from groupstorm.report.page.palette import OWNERS_LIGHT

    opened(chrome, pages / "many.html")
    rows = """
        const lane = scene.lanes.find((one) => one.kind === arguments[0]);
        return [lane.rows.map((row) => lane.run.partitions[row]), lane.canvas.clientHeight];
    """
    for kind, every in (("partitions", 84), ("members", 42)):
        names, height = chrome.execute_script(rows, kind)
        assert len(names) == 20
        assert height / 20 >= 10
        note = chrome.find_element("css selector", f"canvas[data-lane={kind}] + .note").text
        assert note.startswith(f"20 of {every} {kind} are drawn")
        assert f"the other {every - 20} " in note
    partitions, _ = chrome.execute_script(rows, "partitions")
    lost = dict.fromkeys((f"topic-0-{number}" for number in range(84)), 0.0)
    gaps = chrome.execute_script("return scene.runs[0].gaps.map((gap) => [gap.partition, gap.seconds])")
    for partition, seconds in gaps:
        lost[partition] += seconds
    left_out = max((name for name in lost if name not in partitions), key=lambda name: lost[name])
    assert all(lost[name] >= lost[left_out] - 0.001 for name in partitions)
    grey, others = rgb(OWNERS_LIGHT[6]), {rgb(colour) for colour in OWNERS_LIGHT if colour != OWNERS_LIGHT[6]}
    found = set(chrome.execute_script(COLOURS, "partitions", 0))
    assert grey in found
    assert not others & found
    chrome.find_element("id", "partition").send_keys(left_out)
    chrome.find_element("id", "member").send_keys("member-1")
    frame_drawn(chrome)
    assert left_out in chrome.execute_script(rows, "partitions")[0]
    assert chrome.find_element("css selector", "canvas[data-lane=members] + .note").text == ""
    assert problems(chrome) == []


def test_the_picture_of_many_partitions_says_how_many_are_not_drawn(pages: Path) -> None:
    drawn = groupstorm("report", "many", "--svg", cwd=pages)
    assert drawn.returncode == 0, drawn.stderr
    assert "Each of 64 others: " in drawn.stdout


def test_rebalances_are_gone_through_from_the_first_one_on(chrome: Any, pages: Path) -> None:
    opened(chrome, pages / "both.html")
    begins = chrome.execute_script(
        "return scene.runs[0].rebalances.map((one) => moment(scene.runs[0], one.from))"
    )
    body, said = chrome.find_element("tag name", "body"), chrome.find_element("id", "said")
    for key, place in (("r", 0), ("r", 1), ("r", 2), ("R", 1), ("0", 1), ("R", -1), ("r", 0)):
        body.send_keys(key)
        assert f"rebalance at {begins[place]}:" in said.text
    chrome.find_element("css selector", "input[data-run=eager]").click()
    body.send_keys("r")
    assert said.text == "No rebalance: no run that is shown has one."


def test_a_generation_is_found(chrome: Any, pages: Path) -> None:
    opened(chrome, pages / "both.html")
    chrome.execute_script(
        "const field = document.getElementById('generation'); field.value = 3;"
        "field.dispatchEvent(new Event('change'));"
    )
    assert "eager: generation 3 from" in chrome.find_element("id", "said").text


def test_a_sweep_shows_its_curve_and_other_figures(chrome: Any, pages: Path) -> None:
    from selenium.webdriver.support.select import Select

    opened(chrome, pages / "sweep.html")
    points = chrome.find_elements("css selector", "[data-part=sweep] circle[data-point]")
    assert [point.get_attribute("data-point") for point in points] == ["10s", "20s", "30s"]
    before = points[0].get_attribute("aria-label")
    chooser = Select(chrome.find_element("css selector", "[data-part=sweep] select"))
    chooser.select_by_visible_text("generations")
    after = chrome.find_element("css selector", "[data-part=sweep] circle[data-point]").get_attribute(
        "aria-label"
    )
    assert before != after
    ticks = chrome.find_elements("css selector", "[data-part=sweep] svg text[text-anchor=end]")
    values = [float(tick.text.replace(",", "")) for tick in ticks]
    assert values == [values[-1] * share for share in (0, 0.25, 0.5, 0.75, 1)], "2.5 was called 3"
    assert len(chrome.find_elements("css selector", "[data-part=scatter] circle")) == 6
    assert problems(chrome) == []


#: The boxes of the texts of each axis, from left to right: of pictures, and of a canvas as it is drawn.
AXIS_LABELS = """
const rows = [...document.querySelectorAll(".picture svg")].map((picture) => {
  const boxes = [...picture.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
  return boxes.map((box) => [box.left, box.right, box.top, box.bottom]);
});
const draw = CanvasRenderingContext2D.prototype.fillText;
for (const axis of document.querySelectorAll("canvas[data-lane=axis]")) rows.push([]);
const first = rows.length - document.querySelectorAll("canvas[data-lane=axis]").length;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const place = [...document.querySelectorAll("canvas[data-lane=axis]")].indexOf(this.canvas);
  const half = this.measureText(text).width / 2;
  if (place >= 0) rows[first + place].push([x - half, x + half, y, y + 12]);
  draw.apply(this, arguments);
};
const done = arguments[0];
window.dispatchEvent(new Event("resize"));
requestAnimationFrame(() => requestAnimationFrame(() => {
  CanvasRenderingContext2D.prototype.fillText = draw;
  done(rows);
}));
"""


@contextmanager
def screen(chrome: Any, width: int) -> Iterator[None]:
    """A screen so many CSS pixels wide."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def overlap(one: list[float], other: list[float]) -> bool:
    """Boxes: left, right, top, bottom."""
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("page", ["both.html", "sweep.html"])
def test_no_screen_scrolls_sideways_and_no_axis_label_hides_another(
    chrome: Any, pages: Path, page: str, width: int
) -> None:
    with screen(chrome, width):
        opened(chrome, pages / page)
        wide, room = chrome.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert room == width
        assert wide <= room
        axes = chrome.execute_async_script(AXIS_LABELS)
        assert axes
        for labels in axes:
            assert len(labels) > 1
            for place, one in enumerate(labels):
                assert 0 <= one[0] < one[1] <= width
                assert not [other for other in labels[place + 1 :] if overlap(one, other)]
        assert problems(chrome) == []


def test_the_figures_scroll_in_their_box_and_their_names_stay(chrome: Any, pages: Path) -> None:
    with screen(chrome, 360):
        opened(chrome, pages / "both.html")
        before, after = chrome.execute_script(
            """
            const [box, name] = [document.querySelector(".scroll"), document.querySelector("tbody th")];
            document.querySelector("table").style.width = "900px";
            const before = name.getBoundingClientRect().left;
            box.scrollLeft = 200;
            return [before, name.getBoundingClientRect().left];
            """
        )
        assert before == after
        assert chrome.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_the_answer_and_the_bars_are_there_without_a_script(pages: Path, tmp_path: Path) -> None:
    with browser(tmp_path / "log", "--blink-settings=scriptEnabled=false") as driver:
        driver.get((pages / "both.html").as_uri())
        assert driver.find_element("tag name", "h1").text.startswith("What does a rolling deploy cost")
        bars = driver.find_element("css selector", "figure svg")
        assert bars.size["width"] > 300
        assert "eager" in driver.find_element("css selector", "figure").text


def test_dark_colours_for_those_who_want_them(pages: Path, tmp_path: Path) -> None:
    from groupstorm.report.page.palette import DARK, OWNERS_DARK

    with browser(tmp_path / "log", "--force-dark-mode") as driver:
        opened(driver, pages / "both.html")
        assert driver.execute_script("return dark.matches")
        found = set(driver.execute_script(COLOURS, "partitions", 0))
        assert rgb(OWNERS_DARK[0]) in found
        assert rgb(DARK["gap"]) in found
