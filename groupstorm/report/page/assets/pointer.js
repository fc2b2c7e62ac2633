// What the pointer and the keyboard do with the lanes: zoom, pan, words at the pointer, from gap to gap.

const SPAN_MIN = 0.002;

function setWindow(from, to) {
  const wide = Math.min(scene.span, Math.max(SPAN_MIN, to - from));
  scene.from = Math.min(Math.max(0, from), scene.span - wide);
  scene.to = scene.from + wide;
  drawSoon();
}

function zoom(factor, around) {
  const at = around === undefined ? (scene.from + scene.to) / 2 : around;
  setWindow(at - (at - scene.from) * factor, at + (scene.to - at) * factor);
}

function pan(share) {
  const by = share * (scene.to - scene.from);
  setWindow(scene.from + by, scene.to + by);
}

let isWaiting = false;

// Draws once before the next frame, however often it is asked.
function drawSoon() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    drawAll();
  });
}

function drawAll() {
  for (const lane of scene.lanes) {
    if (lane.canvas.offsetParent !== null) lane.draw();
  }
  const whole_ = scene.from === 0 && scene.to === scene.span;
  const bucket = Math.max(0, ...scene.runs.map((run) => (run.owners.isExact ? 0 : run.owners.unit)));
  let words = whole_ ? "the whole time" : `${seconds(scene.to - scene.from)} of ${seconds(scene.span)}`;
  if (bucket) {
    words += `; owners and what members do are summed up over ${seconds(bucket)}`;
    if (!whole_) {
      const [from, to] = [scene.from, scene.to].map((at) => (scene.runs[0].fromSeconds + at).toFixed(1));
      words += ` (every change: groupstorm report RUN --from ${from} --to ${to})`;
    }
  }
  document.getElementById("seen").textContent = words;
}

const tip = element("div", { id: "tip", role: "status", hidden: true });

function showTip(lines, x, y) {
  tip.hidden = lines.length === 0;
  tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
  const wide = tip.offsetWidth;
  tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - wide - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > window.innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
}

function place(event) {
  const box = event.currentTarget.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function attachPointer(lane) {
  const { canvas } = lane;
  let begun = null;
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    const at = toTime(x, lane.width);
    scene.cursor = at >= scene.from && at <= scene.to ? at : null;
    if (begun && begun.isPan) setWindow(begun.from - (at - scene.from) + (begun.at - begun.from), begun.to - (at - scene.from) + (begun.at - begun.from));
    showTip(scene.cursor === null && !begun ? [] : lane.describe(x, y), event.clientX, event.clientY);
    if (begun && !begun.isPan) brush(lane, begun.x, x);
    drawSoon();
  });
  canvas.addEventListener("pointerleave", () => {
    scene.cursor = null;
    showTip([]);
    drawSoon();
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x] = place(event);
    begun = { x, at: toTime(x, lane.width), from: scene.from, to: scene.to, isPan: event.shiftKey };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!begun) return;
    const [x, y] = place(event);
    brush(lane, 0, 0);
    if (!begun.isPan && Math.abs(x - begun.x) > 4) {
      const [from, to] = [begun.at, toTime(x, lane.width)].sort((one, other) => one - other);
      setWindow(Math.max(from, 0), Math.min(to, scene.span));
    } else if (!begun.isPan) {
      lane.chosen?.(x, y);
    }
    begun = null;
  });
  canvas.addEventListener("pointercancel", () => {
    begun = null;
    brush(lane, 0, 0);
  });
  canvas.addEventListener("dblclick", () => setWindow(0, scene.span));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.altKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, toTime(place(event)[0], lane.width));
  }, { passive: false });
}

// Shows the part that is being chosen over all lanes of the run.
function brush(lane, from, to) {
  const box = lane.canvas.closest(".lanes").querySelector(".brush");
  const [left, right] = [from, to].sort((one, other) => one - other);
  box.hidden = right - left < 4;
  box.style.left = `${left}px`;
  box.style.width = `${right - left}px`;
}

// -- from gap to gap, from rebalance to rebalance ------------------------------------------------------

let gapPlace = -1;

function gapsSeen() {
  return scene.runs.filter((run) => !run.section.hidden).flatMap((run) => run.gaps)
    .sort((one, other) => other.seconds - one.seconds);
}

function showGap(step) {
  const gaps = gapsSeen();
  const said = document.getElementById("said");
  if (!gaps.length) {
    said.textContent = "No gap: in no run that is shown a partition was known to be without an owner.";
    return;
  }
  gapPlace = (gapPlace + step + gaps.length) % gaps.length;
  const gap = gaps[gapPlace];
  scene.chosen = gap;
  const around = Math.max(0.05, gap.to - gap.from);
  setWindow(gap.from - around, gap.to + around);
  const one = rebalanceBefore(gap.run, gap);
  const left = gap.before ? `${gap.before} had it` : "nobody had had it";
  const taken = gap.after ? (gap.after === gap.before ? `${gap.after} got it back` : `${gap.after} took it`) : "nobody took it";
  said.textContent = `Gap ${gapPlace + 1} of ${gaps.length}: ${gap.run.name}, ${gap.partition}, ${seconds(gap.seconds)} from `
    + `${moment(gap.run, gap.from)} on: ${left}; ${taken}. ${one ? `Rebalance: ${one.cause}${one.culprit ? ` (${one.culprit})` : ""}` : "No rebalance"}.`;
  gap.run.section.scrollIntoView({ block: "nearest" });
}

function showGeneration(wanted) {
  for (const run of scene.runs.filter((one) => !one.section.hidden)) {
    const end = run.generations.lastIndexOf(wanted);
    const begin = run.generations.indexOf(wanted);
    if (begin >= 0) {
      let from = begin;
      while (from > 0 && isMoving(run.stateValues[from - 1])) from -= 1;
      const to = end + 1 < run.stateTimes.length ? run.stateTimes[end + 1] : run.span;
      const most = Math.max(5, 4 * (run.stateTimes[begin] - run.stateTimes[from]));
      setWindow(run.stateTimes[from] - 1, Math.min(to + 1, run.stateTimes[begin] + most));
      document.getElementById("said").textContent = `${run.name}: generation ${wanted} from ${moment(run, run.stateTimes[begin])} on.`;
      return;
    }
  }
  document.getElementById("said").textContent = `No run that is shown has a generation ${wanted}.`;
}

let rebalanceShown = null;

// From the rebalance that was shown last if it is still seen; from the whole time to the first or the last one.
function nextRebalance(step) {
  const said = document.getElementById("said");
  const run = scene.runs.find((one) => !one.section.hidden && one.rebalances.length);
  if (!run) {
    said.textContent = "No rebalance: no run that is shown has one.";
    return;
  }
  const all = run.rebalances;
  const last = all.indexOf(rebalanceShown);
  const isSeen = last >= 0 && all[last].to >= scene.from && all[last].from <= scene.to;
  let place = step > 0 ? all.findIndex((one) => one.to >= scene.from) : all.findLastIndex((one) => one.from <= scene.to);
  if (isSeen && scene.to - scene.from < scene.span) place = last + step;
  const one = all[(place + all.length) % all.length];
  rebalanceShown = one;
  const wide = Math.min(scene.to - scene.from, scene.span / 4);
  setWindow(one.from - wide / 2, one.from + wide / 2);
  said.textContent = `${run.name}: ${rebalanceLines(run, one).join("; ")}.`;
}

const KEYS = {
  ArrowLeft: () => pan(-0.2),
  ArrowRight: () => pan(0.2),
  "+": () => zoom(0.6),
  "=": () => zoom(0.6),
  "-": () => zoom(1.6),
  0: () => setWindow(0, scene.span),
  g: () => showGap(1),
  G: () => showGap(-1),
  r: () => nextRebalance(1),
  R: () => nextRebalance(-1),
};

function attachKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !scene.runs.length) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("partition").focus();
    } else if (Object.hasOwn(KEYS, event.key)) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
}
