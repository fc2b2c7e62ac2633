// Pictures of figures: the curves of a sweep with their knees, and one figure against another.

const LINES = ["lag", "gap", "owns", "paused", "joining", "two"];
const [H, PAD] = [320, 78];
const LETTER = 7;

// A round number that is not below the value; of seconds also round minutes and hours.
function roundUp(value, unit) {
  if (!value) return 1;
  const times = [60, 120, 240, 300, 600, 1200, 1800, 2400, 3600, 7200, 14400, 21600, 28800, 43200, 86400];
  if (unit === "seconds" && value > 40) return times.find((one) => one >= value) || 86400 * Math.ceil(value / 86400);
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= value);
}

function largest(values) {
  return values.reduce((most, one) => Math.max(most, one), 0);
}

// A frame with two axes from 0 (or from the least x), as wide as there is room, so that its letters keep their
// size; returns the drawing and what places a point.
function frame(xs, ys, xWords, yMeasure, xUnit, xTicks) {
  const [xLabel, yLabel] = [xUnit, yMeasure.unit].map((unit) => (value) => inUnit(value, unit));
  const yWords = yMeasure.phrase;
  const W = Math.min(820, document.getElementById("page").clientWidth);
  const least = xTicks ? Math.min(...xs) : 0;
  const mostX = xTicks ? Math.max(...xs) : roundUp(largest(xs), xUnit);
  const mostY = roundUp(largest(ys), yMeasure.unit);
  const at = (x, y) => [
    PAD + ((mostX > least ? (x - least) / (mostX - least) : 0.5) * (W - PAD - 20)),
    H - 44 - (y / mostY) * (H - 64),
  ];
  const drawing = shape("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  drawing.append(shape("title", {}, `${yWords} over ${xWords}`));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const [, y] = at(least, mostY * share);
    drawing.append(shape("line", { x1: PAD, x2: W - 20, y1: y, y2: y, class: "grid" }));
    drawing.append(shape("text", { x: PAD - 8, y: y + 4, "text-anchor": "end" }, yLabel(mostY * share)));
  }
  const ticks = xTicks || [0, 0.25, 0.5, 0.75, 1].map((share) => [mostX * share, xLabel(mostX * share)]);
  let free = 0;
  for (const [x, label] of ticks) {
    const half = (label.length * LETTER) / 2;
    const middle = Math.min(at(x, 0)[0], W - half);
    if (middle - half < free) continue;
    free = middle + half + LETTER;
    drawing.append(shape("text", { x: middle, y: H - 25, "text-anchor": "middle" }, label));
  }
  drawing.append(shape("text", { x: W / 2, y: H - 7, "text-anchor": "middle" }, xWords));
  return [drawing, at];
}

function chooser(label, measures, chosen, change) {
  const select = element("select", { "aria-label": label, onchange: (event) => change(event.target.value) },
    measures.map((one) => element("option", { value: one.figure, selected: one.figure === chosen }, one.phrase)));
  return element("label", {}, `${label} `, select);
}

function colourOf(place) {
  return scene.colours[LINES[place % LINES.length]];
}

function sweepPart(sweep) {
  const holder = element("div", { class: "picture" });
  const measures = sweep.measures.some((one) => one.figure === sweep.figure) ? sweep.measures
    : [{ figure: sweep.figure, phrase: sweep.figure, unit: "count" }, ...sweep.measures];
  let figure = sweep.figure;
  const draw = () => holder.replaceChildren(...curvesOf(sweep, measures.find((one) => one.figure === figure)));
  const section = element("section", { "data-part": "sweep" },
    element("h2", {}, `${sweep.preset}${sweep.variant ? `, ${sweep.variant}` : ""}: over ${sweep.axis}`),
    element("p", { class: "note" }, `Medians of ${sweep.seeds.length} seed${sweep.seeds.length === 1 ? "" : "s"}, the range over them as a band. A ring: the knee, or the first value from which on the goal is met.`),
    chooser("Figure", measures, figure, (wanted) => { figure = wanted; draw(); }),
    holder,
    sweep.refused.length ? element("ul", { class: "unknown" }, sweep.refused.map((one) => element("li", {},
      `Refused: ${Object.entries(one.settings).map((pair) => pair.join("=")).join(", ")}: ${one.why}`))) : null);
  section.redraw = draw;
  return section;
}

function curvesOf(sweep, measure) {
  const curves = sweep.curves.map((curve) => ({ ...curve, points: curve.points.filter((one) => one.spread[measure.figure]) }));
  const every = curves.flatMap((curve) => curve.points);
  if (!every.length) return [element("p", {}, `No point has a value of ${measure.phrase}.`)];
  const show = (value) => inUnit(value, measure.unit);
  const labels = [...new Map(every.map((one) => [one.x, one.label])).entries()].sort((one, other) => one[0] - other[0]);
  const [drawing, at] = frame(every.map((one) => one.x), every.map((one) => one.spread[measure.figure].most),
    sweep.axis, measure, "", labels);
  const legend = element("ul", { class: "lines" });
  curves.forEach((curve, place) => {
    const colour = colourOf(place);
    const spread = (one) => one.spread[measure.figure];
    const line = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    drawing.append(shape("polygon", {
      points: line([...curve.points.map((one) => at(one.x, spread(one).most)),
        ...curve.points.toReversed().map((one) => at(one.x, spread(one).least))]),
      fill: colour, "fill-opacity": 0.15,
    }));
    if (sweep.isNumeric) {
      drawing.append(shape("polyline", { points: line(curve.points.map((one) => at(one.x, spread(one).median))), fill: "none", stroke: colour, "stroke-width": 2 }));
    }
    for (const one of curve.points) {
      const [x, y] = at(one.x, spread(one).median);
      const isKnee = measure.figure === sweep.figure && sweep.knees[curve.others] === one.label;
      const goal = one.goalMet === null || one.goalMet === undefined ? "" : `; the goal is met by ${(100 * one.goalMet).toFixed(0)} % of the seeds`;
      const words = `${curve.others ? `${curve.others}, ` : ""}${sweep.axis}=${one.label}: ${show(spread(one).median)} (${show(spread(one).least)} to ${show(spread(one).most)})${goal}`;
      drawing.append(shape("circle", { cx: x, cy: y, r: 4, fill: colour, tabindex: 0, "data-point": one.label, "aria-label": words }, shape("title", {}, `${words}\n${one.command}`)));
      if (isKnee) drawing.append(shape("circle", { cx: x, cy: y, r: 10, fill: "none", stroke: colour, "stroke-width": 2, class: "knee" }));
    }
    legend.append(element("li", {}, element("i", { style: `background:${colour}` }), curve.others || "all points"));
  });
  return [drawing, curves.length > 1 ? legend : ""];
}

function scatterPart(points, measures) {
  if (points.length < 2 || measures.length < 2) return null;
  const names = [...new Set(points.map((one) => one.run))];
  let [x, y] = [measures[0].figure, (measures.find((one) => one.figure === "lag_peak" || one.figure === "moves") || measures[1]).figure];
  const holder = element("div", { class: "picture" });
  const draw = () => {
    const [mx, my] = [x, y].map((wanted) => measures.find((one) => one.figure === wanted));
    const known = points.filter((one) => one.values[x] !== undefined && one.values[y] !== undefined);
    const [drawing, at] = frame(known.map((one) => one.values[x]), known.map((one) => one.values[y]), mx.phrase, my,
      mx.unit, null);
    for (const one of known) {
      const [cx, cy] = at(one.values[x], one.values[y]);
      const words = `${one.run}: ${mx.phrase} ${inUnit(one.values[x], mx.unit)}, ${my.phrase} ${inUnit(one.values[y], my.unit)}`;
      drawing.append(shape("circle", { cx, cy, r: 5, fill: colourOf(names.indexOf(one.run)), "fill-opacity": 0.7, tabindex: 0, "aria-label": words }, shape("title", {}, words)));
    }
    const left = points.length - known.length;
    const legend = names.length > LINES.length ? "" : element("ul", { class: "lines" },
      names.map((name, place) => element("li", {}, element("i", { style: `background:${colourOf(place)}` }), name)));
    holder.replaceChildren(drawing, legend, left ? element("p", { class: "note" }, `${left} without a value are not drawn.`) : "");
  };
  const section = element("section", { "data-part": "scatter" }, element("h2", {}, "Figures against each other"),
    chooser("Across", measures, x, (wanted) => { x = wanted; draw(); }), " ",
    chooser("Up", measures, y, (wanted) => { y = wanted; draw(); }), holder);
  section.redraw = draw;
  return section;
}
