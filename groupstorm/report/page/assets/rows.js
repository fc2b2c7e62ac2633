// The lanes that have a row for each partition or member.

// A row has at least so many pixels: its name stands beside it.
const NAMED_ROW = 10;

// So many rows have a height at which a reader tells them apart; of more, half as many are drawn.
function rowsMost() {
  return scene.runs.length > 2 ? 24 : 40;
}

// With more members than that a colour does not tell them apart: all owners have one.
function isCrowded(run) {
  return run.members.length > rowsMost();
}

// The grey one, as `palette.py` has it.
const CROWD = 6;

class RowsLane extends Lane {
  constructor(run, kind, label) {
    super(run, kind, kind, label);
    this.note = element("p", { class: "note" });
  }

  // Chooses `rows` among lists: all, or those that had the special value the longest; a note tells of the others.
  choose(every, steps, what, does) {
    this.rows = every;
    this.note.textContent = "";
    if (every.length > rowsMost()) {
      const sorted = [...every].sort((one, other) => steps.specialMs[other] - steps.specialMs[one]);
      this.rows = sorted.slice(0, rowsMost() / 2).sort((one, other) => one - other);
      const [most, least] = [sorted[rowsMost() / 2], sorted.at(-1)].map((list) => seconds(steps.specialMs[list] / 1000));
      this.note.textContent = `${whole(this.rows.length)} of ${whole(every.length)} ${what} are drawn, those that ${does} the longest. `
        + `Each of the other ${whole(every.length - this.rows.length)} ${does} for ${least === most ? most : `${least} to ${most}`}: a filter shows them.`;
    }
    this.height = Math.max(24, (this.rows.length > 30 ? NAMED_ROW : 12) * this.rows.length);
  }

  // The name of each row. ``ownerOf``: row -> the member whose colour stands before the name, or null.
  nameRows(pen, nameOf, ownerOf) {
    const high = this.height / Math.max(1, this.rows.length);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.font = "11px system-ui, sans-serif";
    this.rows.forEach((row, place) => {
      const middle = (place + 0.5) * high;
      const owner = ownerOf(row);
      if (owner !== null) {
        pen.fillStyle = this.colour(owner);
        pen.fillRect(LEFT - 12, middle - 4, 8, 8);
      }
      const right = LEFT - (owner === null ? 8 : 16);
      pen.fillStyle = scene.colours.faint;
      pen.fillText(ending(pen, nameOf(row), right - 2), right, middle);
    });
    pen.font = LANE_FONT;
  }

  // A member's colour; of others none if members are filtered.
  colour(member) {
    const name = this.run.members[member];
    if (scene.member && !name.toLowerCase().includes(scene.member.toLowerCase())) return scene.colours.empty;
    if (isCrowded(this.run)) return scene.colours.owners[CROWD];
    return scene.colours.owners[member % scene.colours.owners.length];
  }

  // Paints times with one value, each [x, width, share]: the opacity is the share of a pixel's time, but a little
  // of it is seen.
  paint(pen, spells, y, high, colour) {
    const shares = new Float32Array(Math.ceil(this.width) + 1);
    for (const [x, wide, share] of spells) {
      for (let pixel = Math.max(0, Math.floor(x)); pixel < Math.min(x + wide, this.width); pixel += 1) {
        shares[pixel] += (Math.min(pixel + 1, x + wide) - Math.max(pixel, x)) * (share ?? 1);
      }
    }
    const opacity = (share) => (share > 0 ? Math.min(1, Math.max(0.25, Math.ceil(share * 10 - 0.01) / 10)) : 0);
    pen.fillStyle = colour;
    for (let begin = 0, end = 1; end < shares.length; end += 1) {
      if (opacity(shares[end]) === opacity(shares[begin])) continue;
      pen.globalAlpha = opacity(shares[begin]);
      pen.fillRect(begin, y, end - begin, high);
      begin = end;
    }
    pen.globalAlpha = 1;
  }

  rowAt(y) {
    const row = Math.floor((y / this.height) * this.rows.length);
    return row >= 0 && row < this.rows.length ? this.rows[row] : null;
  }

  mark(pen, wanted) {
    const row = this.rows.indexOf(wanted);
    if (row < 0) return;
    const high = this.height / this.rows.length;
    pen.strokeStyle = scene.colours.text;
    pen.lineWidth = 1.5;
    pen.strokeRect(LEFT + 1, row * high, this.width - LEFT - RIGHT - 2, Math.max(3, high));
  }
}

class PartitionsLane extends RowsLane {
  constructor(run) {
    super(run, "partitions", `Partitions of ${run.name} over time, by owner`);
  }

  draw() {
    const wanted = scene.partition.toLowerCase();
    const every = this.run.partitions.map((name, number) => number)
      .filter((number) => this.run.partitions[number].toLowerCase().includes(wanted));
    this.choose(every, this.run.owners, "partitions", "had no owner");
    if (scene.chosen && scene.chosen.run === this.run) {
      const number = this.run.partitions.indexOf(scene.chosen.partition);
      if (every.includes(number) && !this.rows.includes(number)) {
        this.rows[Math.max(0, lastBefore(this.rows, number))] = number;
      }
    }
    const { rows, height } = this;
    const pen = this.begin(height);
    this.nameRows(pen, (number) => this.run.partitions[number], () => null);
    this.clip(pen);
    pen.fillStyle = scene.colours.empty;
    pen.fillRect(LEFT, 0, this.width - LEFT - RIGHT, height);
    const high = height / Math.max(1, rows.length);
    const tall = high > 5 ? high - 1 : high;
    rows.forEach((partition, row) => this.drawRow(pen, partition, row * high, tall));
    this.unknown(pen, "who owns what is not known here");
    if (scene.chosen && scene.chosen.run === this.run) {
      this.mark(pen, this.run.partitions.indexOf(scene.chosen.partition));
    }
    this.cursor(pen);
    pen.restore();
  }

  drawRow(pen, partition, y, high) {
    const { colours } = scene;
    const [steps, list] = ownerSteps(this.run, partition);
    const gaps = [];
    steps.each(list, scene.from, scene.to, (from, to, value, share) => {
      const x = toX(Math.max(from, scene.from), this.width);
      const wide = toX(Math.min(to, scene.to), this.width) - x;
      if (share === null ? value === UNOWNED : share > 0) gaps.push([x, wide, share]);
      if (value === UNOWNED || value === ABSENT || wide < 0.3) return;
      pen.fillStyle = value === TWO_OWNERS ? colours.two : this.colour(value);
      pen.fillRect(x, y, isCrowded(this.run) && wide > 3 ? wide - 1 : wide + 0.5, high);
    });
    this.paint(pen, gaps, y, high, colours.gap);
  }

  describe(x, y) {
    const partition = this.rowAt(y);
    if (partition === null) return [];
    const at = toTime(x, this.width);
    const lines = [`${this.run.partitions[partition]}, ${moment(this.run, at)}`];
    if (this.run.unknown.some(([from, to]) => from <= at && at <= to)) {
      return [...lines, "the trace does not know the owner here", ...this.run.missing.slice(0, 1)];
    }
    const [steps, list] = ownerSteps(this.run, partition);
    const place = steps.find(list, at);
    if (place < 0) return lines;
    const one = steps.step(list, place);
    lines.push(this.ownerLine(one));
    if (one.value === UNOWNED) {
      const ending = rebalanceBefore(this.run, one);
      if (ending) lines.push(...rebalanceLines(this.run, ending).slice(0, 2));
    }
    return lines;
  }

  ownerLine(one) {
    const between = `from ${moment(this.run, one.from)} to ${moment(this.run, one.to)}`;
    if (one.share !== null) {
      const owner = one.value >= 0 ? `mostly ${this.run.members[one.value]}` : "no owner";
      return `${owner}; un-owned ${(100 * one.share).toFixed(0)} % of ${seconds(one.to - one.from)} (summed up)`;
    }
    if (one.value === UNOWNED) return `no owner for ${seconds(one.to - one.from)}, ${between}`;
    if (one.value === ABSENT) return "needs no owner: it does not exist, no assignment was complete yet, the group has no members, or it is a share group";
    if (one.value === TWO_OWNERS) return `two owners for ${seconds(one.to - one.from)}, ${between}`;
    return `owner ${this.run.members[one.value]}, for ${seconds(one.to - one.from)}, ${between}`;
  }
}

const JOINING = 1;
const PHASE_COLOURS = ["empty", "joining", "rejoining", "owns", "idle", "paused", "line"];

class MembersLane extends RowsLane {
  constructor(run) {
    super(run, "members", `Members of ${run.name} over time, by phase`);
  }

  draw() {
    const wanted = scene.member.toLowerCase();
    const every = this.run.phaseMembers.map((member, list) => list)
      .filter((list) => this.nameOf(list).toLowerCase().includes(wanted));
    this.choose(every, this.run.phases, "members", "joined without partitions");
    const { rows, height } = this;
    const pen = this.begin(height);
    const hasColours = this.run.partitions.length && !isCrowded(this.run);
    this.nameRows(pen, (list) => this.nameOf(list), (list) => (hasColours ? this.run.phaseMembers[list] : null));
    this.clip(pen);
    const high = height / Math.max(1, rows.length);
    const tall = high > 5 ? high - 1 : high;
    rows.forEach((list, row) => {
      const y = row * high;
      const joins = [];
      this.run.phases.each(list, scene.from, scene.to, (from, to, value, share) => {
        const x = toX(Math.max(from, scene.from), this.width);
        const wide = toX(Math.min(to, scene.to), this.width) - x;
        if (share === null ? value === JOINING : share > 0) joins.push([x, wide, share]);
        if (value === JOINING || wide < 0.3) return;
        pen.fillStyle = scene.colours[PHASE_COLOURS[value]];
        pen.fillRect(x, y, wide + 0.5, tall);
      });
      this.paint(pen, joins, y, tall, scene.colours.joining);
    });
    this.cursor(pen);
    pen.restore();
  }

  nameOf(list) {
    return this.run.members[this.run.phaseMembers[list]];
  }

  describe(x, y) {
    const list = this.rowAt(y);
    if (list === null) return [];
    const at = toTime(x, this.width);
    const lines = [`${this.nameOf(list)}, ${moment(this.run, at)}`];
    const place = this.run.phases.find(list, at);
    if (place >= 0) {
      const one = this.run.phases.step(list, place);
      lines.push(`${this.run.phaseWords[one.value]}${one.share === null ? `, for ${seconds(one.to - one.from)}` : " (most of the time, summed up)"}`);
    }
    return lines;
  }
}

// The text if it is at most so wide, else as much of its end as is: names of partitions and members differ there.
function ending(pen, text, wide) {
  if (pen.measureText(text).width <= wide) return text;
  let cut = 1;
  while (cut < text.length && pen.measureText(`\u2026${text.slice(cut)}`).width > wide) cut += 1;
  return `\u2026${text.slice(cut)}`;
}
