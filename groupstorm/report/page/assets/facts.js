// Words below the lanes: the patterns, what is not known, how to run it again.

function patternsPart(run) {
  if (!run.patterns.length) return null;
  return element("details", { open: scene.runs.length === 1 },
    element("summary", {}, `Why it rebalanced: ${run.patterns.length} pattern${run.patterns.length === 1 ? "" : "s"}`),
    element("ul", {}, run.patterns.map((one) => element("li", {},
      element("strong", {}, `${one.title} (${one.kind})`),
      one.unowned === null ? " cost unknown" : `, un-owned ${one.unowned}`,
      element("div", {}, one.sentence),
      element("div", { class: "note" }, one.advice),
      one.unknown ? element("div", { class: "note" }, `Unknown: ${one.unknown}`) : null))));
}

function unknownPart(run) {
  const lines = [...run.missing];
  if (run.partitions.length && !run.byMembers && run.kind !== "import") {
    lines.push("Rows of the coordinator alone: who owns what is known as far as the coordinator knows it, and times without an owner are lower bounds.");
  }
  if (!run.samples.lag) lines.push("Lag: not in this trace.");
  if (run.rebalancesLeftOut) lines.push(`${whole(run.rebalancesLeftOut)} later rebalances are not marked.`);
  return lines.length ? element("ul", { class: "unknown" }, lines.map((one) => element("li", {}, one))) : null;
}

function againPart(content) {
  const commands = content.runs.filter((run) => run.command)
    .map((run) => element("li", {}, `${run.name}: `, element("code", {}, run.command)));
  return element("footer", {},
    commands.length ? element("section", {}, element("h2", {}, "Run it again"), element("ul", {}, commands)) : null,
    element("p", { class: "note" }, `groupstorm ${content.version}. A trace has no row for a poll() that changes nothing: polls are not drawn.`));
}

function legendPart() {
  const box = (colour) => element("i", { "data-colour": colour });
  const item = (colour, words) => element("span", {}, box(colour), words);
  return element("p", { class: "legend" },
    item("gap", "no owner (paler: for a part of the time)"), scene.runs.some(isCrowded) ? item(`owner${CROWD}`, "an owner: so many members have one colour, until you filter by member")
      : element("span", {}, box("owner0"), box("owner1"), box("owner2"), "owners: a colour is a member"),
    item("two", "two owners"), item("owns", "owns, or Stable"), item("joining", "in a rebalance, owns nothing"),
    item("rejoining", "in a rebalance, keeps partitions"), item("idle", "owns nothing"), item("paused", "stands still"), item("line", "not known"));
}
