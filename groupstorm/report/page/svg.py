"""Pictures of a report as SVG: the lanes of runs on one time axis, curves of a sweep, a bar for each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from groupstorm.report.page.content import RunView
from groupstorm.report.page.history import ABSENT, TWO_OWNERS, UNOWNED
from groupstorm.report.page.palette import CROWD, LIGHT, OWNERS_LIGHT, owner_colour
from groupstorm.report.page.steps import SHARES, Bucket, cells
from groupstorm.verdicts.lost_and_won import is_shared
from groupstorm.verdicts.measures import BY_FIGURE, Measure, Spread, spread_of
from groupstorm.verdicts.ranking import Runs
from groupstorm.visible import visible_xml
from groupstorm.wording import counted, number, seconds

WIDTH: Final = 960
_LEFT, _RIGHT = 96, 16
_PLOT: Final = WIDTH - _LEFT - _RIGHT
_COLUMNS: Final = 200
#: The partitions' lane has so many rows. Of more partitions those are drawn that had no owner the longest.
_ROWS_MAX: Final = 40
_ROWS_CHOSEN: Final = 20
_CURVE: Final = 56
#: So many runs have a bar: those with the least values. The table of figures has all of them.
BARS_MAX: Final = 12
#: A line of a name that has room beside a value on a phone; of more lines the first ones and the last.
_NAME_MAX: Final = 32
_NAME_LINES_MAX: Final = 4


class _Drawing:
    """Elements from top to bottom; ``y`` is where the next one begins."""

    def __init__(self) -> None:
        self.elements: list[str] = []
        self.y = 0

    def text(self, x: float | str, y: float, words: str, **attributes: str) -> None:
        written = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self.elements.append(f'<text x="{_length(x)}" y="{y:g}"{written}>{visible_xml(words)}</text>')

    def rect(self, x: float | str, y: float, width: float | str, height: float, fill: str) -> None:
        self.elements.append(
            f'<rect x="{_length(x)}" y="{y:g}" width="{_length(width)}" height="{height:g}" fill="{fill}"/>'
        )

    def path(self, d: str, **attributes: str) -> None:
        written = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self.elements.append(f'<path d="{d}"{written}/>')

    def label(self, y: float, words: str) -> None:
        self.text(_LEFT - 8, y, words, text_anchor="end", fill=LIGHT["faint"])

    def svg(self, title: str) -> str:
        """The document. ``title``: what it shows, for those who do not see it."""
        height = self.y + 8
        body = "\n".join(self.elements)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12">\n'
            f"<title>{visible_xml(title)}</title>\n"
            f'<rect width="{WIDTH}" height="{height}" fill="{LIGHT["ground"]}"/>\n{body}\n</svg>\n'
        )

    def fluid_svg(self, title: str, description: str) -> str:
        """An element of a page that is as wide as there is room: all x are pixels or shares of the width."""
        body = "\n".join(self.elements)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{self.y}" role="img">\n'
            f"<title>{visible_xml(title)}</title>\n<desc>{visible_xml(description)}</desc>\n{body}\n</svg>"
        )


def _length(pixels_or_share: float | str) -> str:
    return pixels_or_share if isinstance(pixels_or_share, str) else f"{pixels_or_share:g}"


def bars_svg(measure: Measure, runs: Runs) -> str:
    """A bar for the median of each run, the least first, with the range over several seeds as a whisker."""
    spreads = {name: spread_of(map(measure.read, each)) for name, each in runs.items()}
    known = {name: spread for name, spread in spreads.items() if spread is not None}
    ascending = sorted(known, key=lambda name: known[name].median)
    most = max((spread.most for spread in known.values()), default=0) or 1
    seeds = max(map(len, runs.values()))
    figure = f"{measure.phrase[0].upper()}{measure.phrase[1:]}"
    drawing = _Drawing()
    drawing.text(0, 14, figure, font_weight="600")
    drawing.y = 24
    title = figure
    if seeds > 1:
        drawing.text(0, 32, f"median and range of {seeds} seeds")
        title, drawing.y = f"{figure}: median and range of {seeds} seeds", 42
    for name in ascending[:BARS_MAX]:
        _bar(drawing, name, known[name], measure, most)
    unknown = [name for name in spreads if name not in known]
    for name in unknown:
        _bar_head(drawing, name, "not known")
    if len(ascending) > BARS_MAX:
        _bar_head(drawing, f"and {len(ascending) - BARS_MAX:,} more, none with less", "")
    told = [f"{name}: {measure.show_range(known[name])}" for name in ascending]
    told += [f"{name}: not known" for name in unknown]
    return drawing.fluid_svg(title, "; ".join(told))


def _bar(drawing: _Drawing, name: str, spread: Spread, measure: Measure, most: float) -> None:
    _bar_head(drawing, name, measure.show(spread.median))
    y = drawing.y
    least, middle, end = (98 * value / most for value in spread)
    drawing.rect(0, y, "100%", 14, "var(--empty)")
    drawing.rect(0, y, f"{middle:.2f}%", 14, "var(--lag)")
    if spread.least < spread.most:
        drawing.rect(f"{least:.2f}%", y + 6, f"{end - least:.2f}%", 2, "var(--text)")
        for edge in (least, end):
            drawing.rect(f"{edge:.2f}%", y + 2, 2, 10, "var(--text)")
    drawing.y += 24


def _bar_head(drawing: _Drawing, name: str, value: str) -> None:
    """A line above a bar, where the words have room on a phone; a long name has several."""
    lines = wrap(name, _NAME_MAX, expand_tabs=False, replace_whitespace=False)
    drawing.text("100%", drawing.y + 14, value, text_anchor="end", font_weight="600")
    for line in lines if len(lines) <= _NAME_LINES_MAX else [*lines[: _NAME_LINES_MAX - 1], f"..{lines[-1]}"]:
        drawing.text(0, drawing.y + 14, line)
        drawing.y += 18
    drawing.y += 2


def runs_svg(views: Sequence[RunView], title: str) -> str:
    """The lanes of each run, all on one time axis."""
    drawing = _Drawing()
    drawing.y = 22
    drawing.text(8, drawing.y, title, font_size="15", font_weight="600", fill=LIGHT["text"])
    drawing.y += 6
    longest_us = max(view.span_us[1] - view.span_us[0] for view in views)
    unowned_most = max((b.unowned for view in views for b in view.history.samples.buckets), default=0)
    lag_most = max((b.lag or 0 for view in views for b in view.history.samples.buckets), default=0)
    for view in views:
        _run(drawing, view, longest_us, unowned_most, lag_most)
    _time_axis(drawing, longest_us)
    _legend(drawing, any(map(_is_crowded, views)))
    return drawing.svg(title)


def _run(drawing: _Drawing, view: RunView, longest_us: int, unowned_most: int, lag_most: float) -> None:
    drawing.y += 22
    drawing.text(8, drawing.y, view.name, font_weight="600", fill=LIGHT["text"])
    drawing.text(
        WIDTH - _RIGHT, drawing.y, _short(view), text_anchor="end", fill=LIGHT["faint"], font_size="11"
    )
    drawing.y += 6
    _partitions(drawing, view, longest_us)
    buckets, bucket_us = view.history.samples.buckets, view.history.samples.bucket_us
    if unowned_most and view.figures.unowned_partition_seconds is not None:
        values = [bucket.unowned_us / bucket_us for bucket in buckets]
        words = f"un-owned, 0 to {unowned_most:,}"
        _curve(drawing, words, values, unowned_most, bucket_us / longest_us, LIGHT["gap"])
    if lag_most and any(bucket.lag is not None for bucket in buckets):
        _curve(
            drawing,
            f"lag, 0 to {number(lag_most)}",
            _lags(buckets),
            lag_most,
            bucket_us / longest_us,
            LIGHT["lag"],
        )


def _lags(buckets: Iterable[Bucket]) -> list[float]:
    return [bucket.lag or 0 for bucket in buckets]


def _short(view: RunView) -> str:
    unowned = view.figures.unowned_partition_seconds
    unknown = "no owners (a share group)" if is_shared([view.figures]) else "owners unknown"
    owners = unknown if unowned is None else f"un-owned {seconds(unowned)} in all"
    generations = counted(view.figures.generations, "generation")
    return f"{counted(len(view.partitions), 'partition')}, {generations}, {owners}"


def _partitions(drawing: _Drawing, view: RunView, longest_us: int) -> None:
    """A row per partition: its owners by colour, over them the share of the time without one."""
    names, left_out = _chosen(view)
    height = min(8.0, 160 / max(1, len(names)))
    top, span_us = drawing.y, view.span_us
    drawing.label(top + 11, "partitions")
    width = _PLOT * (span_us[1] - span_us[0]) / longest_us
    drawing.rect(_LEFT, top, width, height * len(names), LIGHT["empty"])
    found = cells(view.history.owners, names, span_us, _COLUMNS, UNOWNED, ABSENT)
    cell_width = width * found.bucket_us / (span_us[1] - span_us[0])
    is_crowded = _is_crowded(view)
    boxes: dict[str, list[str]] = {}
    place = 0
    for row, count in enumerate(found.counts):
        y = top + row * height
        edges = [*found.buckets[place : place + count]]
        values = found.values[place : place + count]
        place += count
        ends = [*edges[1:], round(width / cell_width)]
        for begin, end, value in zip(edges, ends, values, strict=True):
            for colour in _colours(value // SHARES, value % SHARES, is_crowded):
                x, wide = _LEFT + begin * cell_width, (end - begin) * cell_width
                boxes.setdefault(colour, []).append(f"M{x:.1f} {y:.1f}h{wide:.1f}v{height:.1f}h-{wide:.1f}z")
    for colour in sorted(boxes, key=lambda one: one.startswith(LIGHT["gap"])):
        fill, _, opacity = colour.partition("/")
        drawing.path("".join(boxes[colour]), fill=fill, **({"fill_opacity": opacity} if opacity else {}))
    for from_us, to_us in view.history.unknown:
        until_us = span_us[1] if to_us is None else to_us
        x = _LEFT + _PLOT * (from_us - span_us[0]) / longest_us
        wide = max(1.0, _PLOT * (until_us - from_us) / longest_us)
        drawing.rect(x, top, wide, height * len(names), LIGHT["idle"])
        drawing.text(x + 4, top + 12, "owners are not known here", font_size="11", fill=LIGHT["text"])
    drawing.y = round(top + height * len(names)) + 4
    if left_out:
        drawing.y += 12
        drawing.text(_LEFT, drawing.y, left_out, font_size="11", fill=LIGHT["faint"])
        drawing.y += 4


def _chosen(view: RunView) -> tuple[list[str], str]:
    """The partitions that are drawn, and a sentence on the others; "" if there are none."""
    every, owners = view.partitions, view.history.owners
    if len(every) <= _ROWS_MAX:
        return every, ""
    lasted_us = {name: owners.lasted_us(name, UNOWNED, view.span_us, ABSENT) for name in every}
    ranked = sorted(every, key=lambda name: -lasted_us[name])
    drawn, others = {*ranked[:_ROWS_CHOSEN]}, ranked[_ROWS_CHOSEN:]
    least, most = (seconds(lasted_us[name] / 1e6) for name in (others[-1], others[0]))
    range_shown = most if least == most else f"{least} to {most}"
    sentence = f"Drawn: those that had no owner the longest. Each of {len(others):,} others: {range_shown}."
    return [name for name in every if name in drawn], sentence


def _is_crowded(view: RunView) -> bool:
    """Whether there are more members than colours: then all owners are grey."""
    return len(view.history.numbers) > len(OWNERS_LIGHT)


def _colours(value: int, share: int, is_crowded: bool) -> Iterable[str]:
    """The colours of a cell: the owner's, then the gap's with its opacity."""
    if value == TWO_OWNERS:
        yield LIGHT["two"]
    elif value >= 0:
        yield owner_colour(CROWD if is_crowded else value)
    if share:
        opacity = max(4, -(-share * 10 // (SHARES - 1))) / 10
        yield f"{LIGHT['gap']}/{opacity:g}" if opacity < 1 else LIGHT["gap"]


def _curve(
    drawing: _Drawing, words: str, values: Sequence[float], most: float, width: float, colour: str
) -> None:
    """A filled curve over buckets that are ``width`` of the axis wide."""
    top = drawing.y + 4
    name, values_shown = words.split(", ", 1)
    drawing.label(top + 11, name)
    drawing.label(top + 25, values_shown)
    base = top + _CURVE
    points = [(0.0, 0.0)]
    for place, value in enumerate(values):
        x = min(1.0, place * width)
        if value != points[-1][1]:
            points += [(x, points[-1][1]), (x, value)]
    points += [(min(1.0, len(values) * width), points[-1][1])]
    line = "L".join(f"{_LEFT + _PLOT * x:.1f} {base - _CURVE * value / most:.1f}" for x, value in points)
    end = _LEFT + _PLOT * points[-1][0]
    drawing.path(f"M{line}L{end:.1f} {base}L{_LEFT} {base}z", fill=colour, fill_opacity="0.25")
    drawing.path(f"M{line}", fill="none", stroke=colour, stroke_width="1")
    drawing.path(f"M{_LEFT} {base}h{_PLOT}", stroke=LIGHT["line"], fill="none")
    drawing.y = round(base) + 2


def ticks(span: float, most: int) -> list[float]:
    """Round numbers from 0 to ``span``, ``most`` of them at most; of seconds also minutes and hours."""
    for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400):
        if span / step <= most:
            break
    else:
        step = 86400
        while span / step > most:
            step *= 2
    return [one * step for one in range(int(span // step) + 1)]


def _time_axis(drawing: _Drawing, longest_us: int) -> None:
    drawing.y += 4
    for at_s in ticks(longest_us / 1e6, 8):
        x = _LEFT + _PLOT * at_s * 1e6 / longest_us
        drawing.path(f"M{x:.1f} {drawing.y}v5", stroke=LIGHT["line"])
        drawing.text(
            x, drawing.y + 18, seconds(at_s), text_anchor="middle", fill=LIGHT["faint"], font_size="11"
        )
    drawing.y += 24


def _legend(drawing: _Drawing, is_crowded: bool) -> None:
    y, x = drawing.y + 4, float(_LEFT)
    drawing.rect(x, y, 14, 10, LIGHT["gap"])
    drawing.text(x + 20, y + 9, "no owner", fill=LIGHT["text"], font_size="11")
    x += 90
    for place, colour in enumerate(OWNERS_LIGHT[:4]):
        drawing.rect(x + place * 12, y, 12, 10, colour)
    words = "owners: a colour is a member, grey any of many" if is_crowded else "owners: a colour is a member"
    drawing.text(x + 54, y + 9, words, fill=LIGHT["text"], font_size="11")
    x += 340 if is_crowded else 240
    drawing.rect(x, y, 14, 10, LIGHT["two"])
    drawing.text(x + 20, y + 9, "two owners at a time", fill=LIGHT["text"], font_size="11")
    drawing.y = y + 14


def sweep_svg(page: Mapping[str, Any], title: str) -> str:
    """The median of the sweep's figure over its axis, with the range over seeds and the knee."""
    drawing = _Drawing()
    drawing.text(8, 22, title, font_size="15", font_weight="600", fill=LIGHT["text"])
    figure, top, height = page["figure"], 44, 260
    measure = BY_FIGURE.get(figure)
    drawing.text(8, top, measure.phrase if measure else figure, fill=LIGHT["faint"])
    curves = [(curve, _drawable(curve, figure)) for curve in page["curves"]]
    xs = [point["x"] for _, found in curves for point in found]
    most = max((point["spread"][figure]["most"] for _, found in curves for point in found), default=0) or 1
    if not xs:
        drawing.text(_LEFT, top + 60, f"No point has a value of {figure}.", fill=LIGHT["text"])
        drawing.y = top + 80
        return drawing.svg(title)
    low, high = min(xs), max(xs)
    base = top + 14 + height

    def at(x: float, y: float) -> str:
        across = (x - low) / (high - low) if high > low else 0.5
        return f"{_LEFT + _PLOT * across:.1f} {base - height * y / most:.1f}"

    for share in (0.0, 0.5, 1.0):
        value = most * share
        drawing.path(f"M{_LEFT} {base - height * share:.1f}h{_PLOT}", stroke=LIGHT["line"])
        drawing.label(base - height * share + 4, measure.show(value) if measure else number(value))
    labels = {point["x"]: point["label"] for _, found in curves for point in found}
    every = -(-len(labels) // 12)
    for place, (x, label) in enumerate(sorted(labels.items())):
        if place % every == 0:
            across = at(x, 0).split()[0]
            drawing.text(float(across), base + 16, label, text_anchor="middle", fill=LIGHT["faint"])
    for place, (curve, found) in enumerate(curves):
        colour = _LINES[place % len(_LINES)]
        edges = [at(p["x"], p["spread"][figure]["most"]) for p in found]
        edges += [at(p["x"], p["spread"][figure]["least"]) for p in reversed(found)]
        drawing.path("M" + "L".join(edges) + "z", fill=colour, fill_opacity="0.15")
        line = [at(p["x"], p["spread"][figure]["median"]) for p in found]
        drawing.path("M" + "L".join(line), fill="none", stroke=colour, stroke_width="2")
        knee = next((p for p in found if p["label"] == page["knees"].get(curve["others"])), None)
        if knee is not None:
            x, y = at(knee["x"], knee["spread"][figure]["median"]).split()
            drawing.elements.append(f'<circle cx="{x}" cy="{y}" r="6" fill="none" stroke="{colour}"/>')
        named = curve["others"] or "median"
        drawing.text(_LEFT, base + 56 + 16 * place, f"— {named}", fill=colour)
    drawing.text(_LEFT + _PLOT / 2, base + 34, page["axis"], text_anchor="middle", fill=LIGHT["text"])
    words = "median, range over seeds; a ring: the knee, or the first value that meets the goal"
    drawing.text(_LEFT, base + 60 + 16 * len(curves), words, fill=LIGHT["faint"], font_size="11")
    drawing.y = base + 66 + 16 * len(curves)
    return drawing.svg(title)


#: Colours of lines, on light ground.
_LINES: Final = ("#0b62a4", "#b3001b", "#00704f", "#7b3fa0", "#8a5a00", "#333333")


def _drawable(curve: Mapping[str, Any], figure: str) -> list[Mapping[str, Any]]:
    return [point for point in curve["points"] if point["spread"].get(figure)]
