// The content of the page, and the packed numbers in it.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const view = new DataView(await new Response(stream).arrayBuffer());
  const numbers = new Int32Array(view.byteLength / 4);
  for (let n = 0; n < numbers.length; n += 1) numbers[n] = view.getInt32(4 * n, true);
  return numbers;
}

const SHARES = 16;

// Values over time, list by list. Exact steps hold a value; cells hold the value that took most of a bucket,
// and the share of the bucket that had the special one. ``specialMs``: how long each list had it, exactly.
class Steps {
  static async read(packed, unitSeconds, span) {
    const made = new Steps();
    const [counts, deltas, values, specialMs] = await Promise.all(
      [packed.counts, packed.times, packed.values, packed.specialMs].map(unpack),
    );
    made.specialMs = specialMs;
    made.isExact = packed.bucketSeconds === 0;
    made.unit = made.isExact ? unitSeconds : packed.bucketSeconds;
    made.span = span;
    made.values = values;
    made.starts = new Int32Array(counts.length + 1);
    made.times = new Int32Array(deltas.length);
    let place = 0;
    for (let list = 0; list < counts.length; list += 1) {
      let now = 0;
      for (let n = 0; n < counts[list]; n += 1, place += 1) {
        now += deltas[place];
        made.times[place] = now;
      }
      made.starts[list + 1] = place;
    }
    return made;
  }

  get lists() {
    return this.starts.length - 1;
  }

  // The place of the step of a list at a time in seconds; -1 if it has none.
  find(list, seconds) {
    let low = this.starts[list];
    let high = this.starts[list + 1];
    if (low === high) return -1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] * this.unit <= seconds) low = middle;
      else high = middle;
    }
    return low;
  }

  step(list, place) {
    const isLast = place + 1 === this.starts[list + 1];
    const value = this.values[place];
    return {
      from: this.times[place] * this.unit,
      to: isLast ? this.span : this.times[place + 1] * this.unit,
      value: this.isExact ? value : Math.floor(value / SHARES),
      share: this.isExact ? null : (value & (SHARES - 1)) / (SHARES - 1),
    };
  }

  // Calls `use(from, to, value, share)` for the steps of a list between two times; share: null if exact.
  each(list, from, to, use) {
    const end = this.starts[list + 1];
    for (let place = this.find(list, from); place >= 0 && place < end; place += 1) {
      const one = this.step(list, place);
      if (one.from >= to) return;
      use(one.from, one.to, one.value, one.share);
    }
  }
}

const UNOWNED = -1;
const ABSENT = -2;
const TWO_OWNERS = -3;

// One run as the lanes draw it.
async function readRun(packed) {
  const span = packed.toSeconds - packed.fromSeconds;
  const run = { ...packed, span };
  run.owners = await Steps.read(packed.owners, packed.unitSeconds, span);
  run.phases = await Steps.read(packed.phases, packed.unitSeconds, span);
  run.phaseMembers = packed.phases.members;
  run.exactOwners = new Map();
  if (packed.worst.partitions) {
    run.worst = await Steps.read(packed.worst, packed.unitSeconds, span);
    packed.worst.partitions.forEach((partition, list) => run.exactOwners.set(partition, list));
  }
  const [times, values, generations] = await Promise.all(
    [packed.states.times, packed.states.values, packed.states.generations].map(unpack),
  );
  run.stateTimes = Array.from(times, (one) => one * packed.unitSeconds);
  run.stateValues = Array.from(values, (one) => packed.states.names[one]);
  run.generations = generations;
  run.rebalances = packed.rebalances.map(([from, to, cause, culprit, rounds, unowned, pattern]) => ({
    from: from * packed.unitSeconds,
    to: to === null ? span : to * packed.unitSeconds,
    isOpen: to === null, cause, culprit, rounds, unowned, pattern,
  }));
  run.steps = packed.steps.map(([at, ...rest]) => [at * packed.unitSeconds, ...rest]);
  run.gaps = packed.gaps.map(([partition, from, to, seconds, before, after]) => ({
    run, partition, from: from * packed.unitSeconds, to: to * packed.unitSeconds, seconds, before, after,
  }));
  run.unknown = packed.unknown.map(([from, to]) => [from * packed.unitSeconds, to * packed.unitSeconds]);
  return run;
}

// The steps of a partition: exact ones if the page has them.
function ownerSteps(run, partition) {
  const list = run.exactOwners.get(partition);
  return list === undefined ? [run.owners, partition] : [run.worst, list];
}

// -- words ---------------------------------------------------------------------------------------------

function seconds(value) {
  if (value === null || value === undefined) return "-";
  if (value < 0.9995) {
    return value === 0 ? "0 s" : value < 0.001 ? "less than 1 ms" : `${(value * 1000).toFixed(0)} ms`;
  }
  if (value < 599.5) return value < 99.95 ? `${value.toFixed(1)} s` : `${value.toFixed(0)} s`;
  if (value < 3599.5) {
    const rest = Math.round(value) % 60;
    return `${Math.floor(Math.round(value) / 60)} min${rest ? ` ${rest} s` : ""}`;
  }
  const minutes = Math.round(value / 60);
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60).toLocaleString("en")} h${rest ? ` ${rest} min` : ""}`;
}

function whole(value) {
  return Math.round(value).toLocaleString("en");
}

function inUnit(value, unit) {
  if (value === null || value === undefined) return "-";
  if (unit === "seconds") return seconds(value);
  if (unit === "milliseconds") return seconds(value / 1000);
  if (unit === "dollars") return `$${value.toFixed(2)}`;
  if (unit === "bytes") {
    for (const [size, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
      if (value >= size) return `${(value / size).toFixed(1)} ${name}`;
    }
  }
  return value.toLocaleString("en", { maximumFractionDigits: value < 1000 ? 2 : 0 });
}

// A time of a run: since its trace began or, of an import, on the wall clock.
function moment(run, at) {
  const since = run.fromSeconds + at;
  if (!run.began) return `${since.toLocaleString("en", { maximumFractionDigits: 3 })} s`;
  const wall = new Date(parsed(run.began) + Math.round(since * 1000));
  return `${wall.toISOString().slice(0, 23).replace("T", " ")} UTC`;
}

// The wall clock at which an import begins, in milliseconds.
function parsed(began) {
  return Date.parse(`${began.replace(" ", "T").slice(0, 23)}Z`);
}

// The seconds of its day that have passed then.
function dayTime(began) {
  return (parsed(began) % 86_400_000) / 1000;
}

// -- elements ------------------------------------------------------------------------------------------

// An element with attributes, and children that are elements or texts; nothing is read as markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
