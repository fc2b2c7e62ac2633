// Puts the page together, and draws it anew if its width or the reader's colours change.

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function useColours(content, isDark) {
  scene.colours = { ...content.palette[isDark ? "dark" : "light"] };
  scene.colours[STRIPES] = (pen) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const brush_ = tile.getContext("2d");
    brush_.strokeStyle = scene.colours.faint;
    for (const from of [-8, 0, 8]) {
      brush_.moveTo(from, 8);
      brush_.lineTo(from + 8, 0);
    }
    brush_.stroke();
    return pen.createPattern(tile, "repeat");
  };
}

function redraw() {
  drawAll();
  for (const section of document.querySelectorAll("[data-part]")) section.redraw();
}

function field(name, label, hint, change) {
  return element("label", {}, `${label} `, element("input", {
    id: name, type: "search", placeholder: hint, autocomplete: "off",
    oninput: (event) => { change(event.target.value.trim()); drawSoon(); },
  }));
}

function controls() {
  const button = (words, key, act) => element("button", { type: "button", onclick: act, title: `key ${key}` }, words);
  const groups = [...new Set(scene.runs.map((run) => run.group))];
  const runs = scene.runs.length < 2 ? null : element("fieldset", {}, element("legend", {}, "Runs"), scene.runs.map((run) => element("label", {},
    element("input", { type: "checkbox", checked: true, "data-run": run.name, onchange: (event) => { run.hidden = !event.target.checked; applyShown(); } }), ` ${run.name}`)));
  const kinds = element("fieldset", {}, element("legend", {}, "Lanes"), Object.keys(scene.shown).map((kind) => element("label", {},
    element("input", { type: "checkbox", checked: true, "data-kind": kind, onchange: (event) => { scene.shown[kind] = event.target.checked; applyShown(); } }),
    ` ${kind === "unowned" ? "un-owned" : kind}`)));
  const group = groups.length < 2 ? null : element("label", {}, "Group ", element("select", { id: "group", onchange: (event) => { scene.group = event.target.value; applyShown(); } },
    element("option", { value: "" }, "all"), groups.map((one) => element("option", { value: one }, one))));
  const generation = element("label", {}, "Generation ", element("input", { id: "generation", type: "number", min: 0, placeholder: "number",
    onchange: (event) => { if (event.target.value !== "") showGeneration(Number(event.target.value)); } }));
  return element("div", { class: "controls" },
    button("Worst gap", "g", () => showGap(1)), button("Next rebalance", "r", () => nextRebalance(1)),
    button("+", "+", () => zoom(0.6)), button("\u2212", "-", () => zoom(1.6)), button("Whole time", "0", () => setWindow(0, scene.span)),
    field("partition", "Partition", "part of a name", (text) => { scene.partition = text; }),
    field("member", "Member", "part of a name", (text) => { scene.member = text; }),
    group, generation, runs, kinds,
    element("p", { class: "note" }, "Drag: zoom. Shift and drag: move. Double click: the whole time. Ctrl and wheel: zoom. Keys: \u2190 \u2192 + \u2212 0, g G gaps, r R rebalances, / filter."),
    element("p", {}, "Seen: ", element("span", { id: "seen" })),
    element("p", { id: "said", "aria-live": "polite" }));
}

function applyShown() {
  for (const run of scene.runs) {
    run.section.hidden = Boolean(run.hidden) || (scene.group !== "" && run.group !== scene.group);
    for (const lane of run.lanes) {
      lane.canvas.hidden = Object.hasOwn(scene.shown, lane.kind) && !scene.shown[lane.kind];
      if (lane.note) lane.note.hidden = lane.canvas.hidden;
    }
  }
  drawSoon();
}

function runPart(run, most) {
  run.lanes = lanesOf(run, most);
  const lanes = element("div", { class: "lanes", tabindex: 0, "aria-label": `Lanes of ${run.name}` },
    run.lanes.flatMap((lane) => (lane.note ? [lane.canvas, lane.note] : [lane.canvas])), element("div", { class: "brush", hidden: true }));
  run.section = element("section", { class: "run", "data-name": run.name },
    element("h3", {}, run.name, element("small", {}, `${amount(run.partitions.length, "partition")}, ${amount(run.members.length, "member")}; ${run.answer}`)),
    lanes, unknownPart(run), patternsPart(run));
  for (const lane of run.lanes) {
    scene.lanes.push(lane);
    attachPointer(lane);
    if (lane.kind === "partitions") {
      lane.chosen = (x, y) => {
        const partition = lane.rowAt(y);
        scene.chosen = partition === null ? null : { run, partition: run.partitions[partition] };
        drawSoon();
      };
    }
    if (lane.kind === "members") {
      lane.chosen = (x, y) => {
        const list = lane.rowAt(y);
        const name = list === null ? "" : lane.nameOf(list);
        scene.member = scene.member === name ? "" : name;
        document.getElementById("member").value = scene.member;
        drawSoon();
      };
    }
  }
  return run.section;
}

// An imported trace may not name a single partition.
function amount(count, what) {
  return count ? `${whole(count)} ${what}${count === 1 ? "" : "s"}` : `${what}s not known`;
}

function mostOf(lists) {
  return Math.max(0, ...lists.filter(Boolean).map((list) => list.reduce((most, one) => Math.max(most, one || 0), 0)));
}

async function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  useColours(content, dark.matches);
  scene.runs = await Promise.all(content.runs.map(readRun));
  scene.span = scene.to = Math.max(SPAN_MIN, ...scene.runs.map((run) => run.span));
  const page = document.getElementById("page");
  const most = {
    unowned: mostOf(scene.runs.map((run) => run.samples.unowned)),
    lag: mostOf(scene.runs.map((run) => run.samples.lag)),
    age: mostOf(scene.runs.map((run) => run.samples.ageSeconds)),
  };
  const runs = scene.runs.map((run) => runPart(run, most));
  const points = [...content.points, ...content.sweeps.flatMap((sweep) => sweep.points)];
  const measures = content.sweeps.length ? content.sweeps[0].measures : content.measures;
  page.append(...content.sweeps.map(sweepPart));
  if (runs.length) page.append(element("section", {}, element("h2", {}, "Over time"), legendPart(), controls(), runs));
  page.append(...[scatterPart(points, measures), againPart(content)].filter(Boolean), tip);
  for (const one of document.querySelectorAll("[data-colour]")) one.style.background = `var(--${one.dataset.colour})`;
  if (!scene.runs.length) page.append(element("span", { id: "seen", hidden: true }));
  attachKeys();
  redraw();
  window.addEventListener("resize", redraw);
  dark.addEventListener("change", () => { useColours(content, dark.matches); redraw(); });
  window.addEventListener("beforeprint", () => { useColours(content, false); redraw(); });
  window.addEventListener("afterprint", () => { useColours(content, dark.matches); redraw(); });
  document.documentElement.dataset.ready = "yes";
}

start().catch((problem) => {
  document.getElementById("page").append(element("p", { class: "unknown" }, `This page cannot be drawn: ${problem.message}. It needs a browser of 2023 or newer.`));
  throw problem;
});
