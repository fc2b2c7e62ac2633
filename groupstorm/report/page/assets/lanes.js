// The lanes of one run: canvases over one time axis.

const LEFT = 118;
const RIGHT = 14;
const LANE_FONT = "12px system-ui, sans-serif";
// The name of the pattern for times that the trace does not know.
const STRIPES = "stripes";

// What all lanes share: the part of the time axis that is seen, the colours, what is filtered.
const scene = {
  from: 0, to: 1, span: 1, colours: {}, partition: "", member: "", group: "", cursor: null, chosen: null,
  runs: [], lanes: [], shown: { unowned: true, partitions: true, members: true, lag: true },
};

function toX(at, width) {
  return LEFT + ((at - scene.from) / (scene.to - scene.from)) * (width - LEFT - RIGHT);
}

function toTime(x, width) {
  return scene.from + ((x - LEFT) / (width - LEFT - RIGHT)) * (scene.to - scene.from);
}

class Lane {
  constructor(run, kind, name, label) {
    Object.assign(this, { run, kind, name });
    this.canvas = element("canvas", { class: "lane", role: "img", "aria-label": label, "data-lane": kind });
    this.canvas.lane = this;
  }

  // Sets the size in pixels of the screen and clears it; returns what draws.
  begin(height) {
    const width = Math.max(320, this.canvas.parentElement.clientWidth);
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = scene.colours.ground;
    pen.fillRect(0, 0, width, height);
    pen.font = LANE_FONT;
    return pen;
  }

  label(pen, lines) {
    pen.fillStyle = scene.colours.faint;
    pen.textAlign = "right";
    pen.textBaseline = "top";
    lines.forEach((line, row) => pen.fillText(line, LEFT - 8, 2 + 14 * row, LEFT - 12));
  }

  // Keeps what is drawn next within the plot.
  clip(pen) {
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, this.width - LEFT - RIGHT, this.height);
    pen.clip();
  }

  // Over the time that the trace does not know.
  unknown(pen, text) {
    for (const [from, to] of this.run.unknown) {
      const x = toX(from, this.width);
      const wide = Math.max(2, toX(to, this.width) - x);
      pen.fillStyle = scene.colours.ground;
      pen.fillRect(x, 0, wide, this.height);
      pen.fillStyle = scene.colours[STRIPES](pen);
      pen.fillRect(x, 0, wide, this.height);
      if (wide > 160) {
        pen.textAlign = "left";
        pen.fillStyle = scene.colours.ground;
        const begin = Math.max(x, LEFT) + 6;
        pen.fillRect(begin - 3, 4, pen.measureText(text).width + 6, 16);
        pen.fillStyle = scene.colours.text;
        pen.fillText(text, begin, 6);
      }
    }
  }

  cursor(pen) {
    if (scene.cursor === null) return;
    pen.strokeStyle = scene.colours.text;
    pen.lineWidth = 1;
    pen.beginPath();
    const x = Math.round(toX(scene.cursor, this.width)) + 0.5;
    pen.moveTo(x, 0);
    pen.lineTo(x, this.height);
    pen.stroke();
  }
}

class AxisLane extends Lane {
  constructor(run) {
    super(run, "axis", "time", "Time axis");
  }

  draw() {
    const pen = this.begin(24);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const seen = scene.to - scene.from;
    const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
      900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
    const most = Math.max(4, Math.floor((this.width - LEFT - RIGHT) / 110));
    const step = steps.find((one) => seen / one <= most) || steps.at(-1);
    let free = 0;
    const offset = this.run.fromSeconds + (this.run.began ? dayTime(this.run.began) : 0);
    for (let n = Math.ceil((scene.from + offset) / step); n * step <= scene.to + offset; n += 1) {
      const at = n * step - offset;
      const x = toX(at, this.width);
      pen.fillStyle = scene.colours.line;
      pen.fillRect(x, 0, 1, 6);
      pen.fillStyle = scene.colours.faint;
      const text = this.run.began ? moment(this.run, at).slice(11, 23).replace(/\.000$/, "") : axisTime(n * step, step);
      const half = pen.measureText(text).width / 2;
      const middle = Math.min(x, this.width - half);
      if (middle - half < free) continue;
      pen.fillText(text, middle, 8);
      free = middle + half + 6;
    }
  }

  describe(x) {
    return [moment(this.run, toTime(x, this.width))];
  }
}

function axisTime(at, step) {
  if (step < 1) return `${at.toFixed(3)} s`;
  if (at < 120) return `${at.toFixed(0)} s`;
  const rest = Math.round(at % 60);
  if (at < 7200) return `${Math.floor(at / 60)} min${rest ? ` ${rest} s` : ""}`;
  const minutes = Math.round((at % 3600) / 60);
  return `${Math.floor(at / 3600)} h${minutes ? ` ${minutes} min` : ""}`;
}

class GroupLane extends Lane {
  constructor(run) {
    super(run, "group", "group", `States and rebalances of group ${run.group}`);
  }

  draw() {
    const pen = this.begin(34);
    this.label(pen, [`${whole(this.run.rebalances.length)} rebalance${this.run.rebalances.length === 1 ? "" : "s"}`, "state"]);
    this.clip(pen);
    const { stateTimes: times, stateValues: states } = this.run;
    for (let n = 0; n < times.length; n += 1) {
      const to = n + 1 < times.length ? times[n + 1] : this.run.span;
      if (to < scene.from || times[n] > scene.to) continue;
      const x = toX(times[n], this.width);
      pen.fillStyle = stateColour(states[n]);
      pen.fillRect(x, 18, Math.max(isMoving(states[n]) ? 1.5 : 0, toX(to, this.width) - x), 12);
    }
    const marks = this.run.rebalances.filter((one) => one.to >= scene.from && one.from <= scene.to);
    marks.forEach((one, place) => {
      const x = toX(one.from, this.width);
      pen.fillStyle = scene.colours.joining;
      pen.beginPath();
      pen.moveTo(x - 4, 2);
      pen.lineTo(x + 4, 2);
      pen.lineTo(x, 14);
      pen.fill();
      const words = one.cause + (one.culprit ? ` (${one.culprit})` : "");
      const next = place + 1 < marks.length ? toX(marks[place + 1].from, this.width) - 4 : this.width - RIGHT;
      if (x + 7 + pen.measureText(words).width < next) {
        pen.fillStyle = scene.colours.faint;
        pen.textAlign = "left";
        pen.textBaseline = "top";
        pen.fillText(words, x + 7, 2);
      }
    });
    this.cursor(pen);
    pen.restore();
  }

  describe(x) {
    const at = toTime(x, this.width);
    const place = lastBefore(this.run.stateTimes, at);
    const lines = [moment(this.run, at)];
    if (place >= 0) {
      const generation = this.run.generations[place];
      lines.push(`group ${this.run.group}: ${this.run.stateValues[place]}${generation >= 0 ? `, generation ${generation}` : ""}`);
    }
    const near = (10 * (scene.to - scene.from)) / this.width;
    const one = this.run.rebalances.find((each) => each.from - near <= at && at <= each.to + near);
    if (one) lines.push(...rebalanceLines(this.run, one));
    const step = this.run.steps.find(([when]) => Math.abs(when - at) < near / 2);
    if (step) lines.push(`scenario: ${step.slice(1).filter(Boolean).join(" ").slice(0, 100)}`);
    return lines;
  }
}

// The rebalance that ended a gap: the last one that began before the gap's end.
function rebalanceBefore(run, gap) {
  return run.rebalances.findLast((each) => each.from <= gap.to && each.to >= gap.from);
}

function rebalanceLines(run, one) {
  const lines = [`rebalance at ${moment(run, one.from)}: ${one.cause}${one.culprit ? ` (${one.culprit})` : ""}`];
  const lasted = one.isOpen ? "not over at the end" : seconds(one.to - one.from);
  lines.push(`${lasted}, ${one.rounds} round${one.rounds === 1 ? "" : "s"}`
    + (one.unowned === null ? ", un-owned time unknown" : `, un-owned ${seconds(one.unowned)} in all`));
  if (one.pattern) lines.push(`pattern: ${one.pattern}`);
  return lines;
}

function isMoving(state) {
  return state !== "Stable" && state !== "Empty" && state !== "Dead";
}

function stateColour(state) {
  const { colours } = scene;
  if (state === "Stable") return colours.owns;
  if (state === "Empty" || state === "Dead") return colours.idle;
  return state === "PreparingRebalance" ? colours.joining : colours.rejoining;
}

function lastBefore(times, at) {
  let low = -1;
  let high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= at) low = middle;
    else high = middle;
  }
  return low;
}

class CurveLane extends Lane {
  constructor(run, kind, name, values, colour, show, most) {
    super(run, kind, name, `${name} of ${run.name} over time`);
    Object.assign(this, { values, colour, show, most });
  }

  draw() {
    const pen = this.begin(56);
    this.label(pen, [this.name, `up to ${this.show(this.most)}`]);
    this.clip(pen);
    const width = this.run.samples.bucketSeconds;
    const first = Math.max(0, Math.floor(scene.from / width));
    const last = Math.min(this.values.length - 1, Math.ceil(scene.to / width));
    pen.beginPath();
    pen.moveTo(toX(first * width, this.width), 55);
    for (let n = first; n <= last; n += 1) {
      const y = 55 - 50 * ((this.values[n] || 0) / (this.most || 1));
      pen.lineTo(toX(n * width, this.width), y);
      pen.lineTo(toX(Math.min((n + 1) * width, this.run.span), this.width), y);
    }
    pen.lineTo(toX(Math.min((last + 1) * width, this.run.span), this.width), 55);
    pen.strokeStyle = scene.colours[this.colour];
    pen.fillStyle = scene.colours[this.colour];
    pen.globalAlpha = 0.25;
    pen.fill();
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
    pen.stroke();
    this.unknown(pen, "not known here");
    this.cursor(pen);
    pen.restore();
  }

  describe(x) {
    const at = toTime(x, this.width);
    const place = Math.floor(at / this.run.samples.bucketSeconds);
    const value = this.values[place];
    if (value === undefined || value === null) return [moment(this.run, at), "not known here"];
    const over = seconds(this.run.samples.bucketSeconds);
    const kind = this.kind === "unowned" ? "mean" : "most";
    return [moment(this.run, at), `${this.name}: ${this.show(value)} (${kind} over ${over})`];
  }
}

// The lanes of a run, from top to bottom. ``most``: the ends of the curves' axes, the same for all runs.
function lanesOf(run, most) {
  const { unowned, lag, ageSeconds } = run.samples;
  const found = [new AxisLane(run), new GroupLane(run)];
  if (run.partitions.length) {
    if (run.ownershipKnown) {
      const few = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
      found.push(new CurveLane(run, "unowned", "un-owned", unowned, "gap", few, most.unowned));
    }
    found.push(new PartitionsLane(run));
  }
  if (run.phaseMembers.length) found.push(new MembersLane(run));
  if (lag) {
    found.push(new CurveLane(run, "lag", "oldest record", ageSeconds, "lag", seconds, most.age));
    found.push(new CurveLane(run, "lag", "records waiting", lag, "lag", whole, most.lag));
  }
  return found;
}
