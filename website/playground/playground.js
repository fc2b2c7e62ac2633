// The form of the playground: what is asked for stands in the link, what comes back is shown below.
const form = document.getElementById("playground");
if (form) start();

function start() {
  const at = (id) => document.getElementById(`gs-${id}`);
  const base = new URL("../playground/", document.baseURI.includes("/playground/") ? document.baseURI : location.href);
  let worker, presets, running = false;

  function begin() {
    worker = new Worker(new URL("worker.js", base), { type: "module" });
    worker.onmessage = ({ data }) => told[data.told](data);
    worker.onerror = (problem) => told.result({ error: problem.message || "the worker did not start" });
    worker.postMessage({ ask: "presets" });
  }

  const told = {
    presets(data) {
      at("run").disabled = false;
      at("status").textContent = "Ready.";
      if (presets) return;
      presets = data.presets;
      form.preset.replaceChildren(...presets.map(({ name }) => new Option(name, name)));
      form.preset.disabled = false;
      at("settings").replaceChildren(...Object.entries(data.settings).map(([name, meaning]) => new Option(meaning, name)));
      fromLink();
    },
    progress({ done, all }) {
      at("progress").value = done / all;
      at("status").textContent = `${done} of ${all} runs`;
    },
    result({ report, error }) {
      busy(false);
      at("status").textContent = error ? "" : "Done.";
      if (error) return refuse(error);
      at("command").textContent = command();
      at("report").srcdoc = report;
      at("result").hidden = false;
    },
  };

  function element(kind, properties, ...children) {
    const made = Object.assign(document.createElement(kind), properties);
    made.append(...children);
    return made;
  }

  function busy(is) {
    running = is;
    at("run").disabled = is;
    at("stop").hidden = at("progress").hidden = !is;
    at("progress").value = 0;
  }

  // The command's own line, beside the field that it names.
  function refuse(line) {
    const named = [...form.querySelectorAll("[data-setting]")].find((field) => line.startsWith(`${field.dataset.setting}:`));
    const place = named ? named.parentElement.querySelector(".gs-refused") : at("error");
    place.textContent = line;
    place.hidden = false;
    named?.setAttribute("aria-invalid", "true");
    named?.focus();
  }

  function knob({ name, usual = "", first = "", meaning = "" }, shown = first) {
    const field = element("input", { value: shown });
    Object.assign(field.dataset, { setting: name, usual, first });
    const refused = element("small", { className: "gs-refused", hidden: true });
    const label = element("label", { title: meaning }, element("code", { textContent: name }), field, refused);
    return label;
  }

  const chosen = () => presets.find(({ name }) => name === form.preset.value);

  function show(changed = {}) {
    const { question, variants, knobs } = chosen();
    at("question").textContent = `${question} (${variants.join(", ")})`;
    const others = Object.keys(changed).filter((name) => !knobs.some((known) => known.name === name));
    at("knobs").replaceChildren(
      ...knobs.map((one) => knob(one, changed[one.name])),
      ...others.map((name) => knob({ name }, changed[name])),
    );
    at("result").hidden = at("error").hidden = true;
  }

  const fields = () => [...form.querySelectorAll("[data-setting]")].filter(({ value }) => value.trim());
  const written = (some) => Object.fromEntries(some.map(({ dataset, value }) => [dataset.setting, value.trim()]));

  // Only what differs from the preset: a value that is set holds for every variant, also where a variant has its own.
  const settings = () => written(fields().filter(({ value, dataset }) => value !== dataset.usual));

  const seeds = () => Math.min(Math.max(Math.trunc(Number(form.seeds.value)) || 1, 1), 10);

  function command() {
    const quoted = (text) => (/^[\w.=:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
    const given = Object.entries(settings()).map(([name, value]) => `--set ${quoted(`${name}=${value}`)}`);
    return ["groupstorm compare", form.preset.value, ...given, "--seeds", seeds()].join(" ");
  }

  function toLink() {
    const words = new URLSearchParams(written(fields().filter(({ value, dataset }) => value !== dataset.first)));
    if (seeds() !== 1) words.set("seeds", seeds());
    history.replaceState(null, "", `#${form.preset.value}${words.size ? `?${words}` : ""}`);
  }

  function fromLink() {
    const [name, words] = location.hash.slice(1).split("?");
    const known = presets.some((preset) => preset.name === name);
    form.preset.value = known ? name : "rolling-deploy";
    const changed = Object.fromEntries(new URLSearchParams(known ? words : ""));
    form.seeds.value = changed.seeds ?? 1;
    form.seeds.value = seeds();
    delete changed.seeds;
    show(changed);
    if (name && !known) refuse(`there is no preset ${name}`);
  }

  form.preset.addEventListener("change", () => { show(); toLink(); });
  window.addEventListener("hashchange", () => presets && !running && fromLink());
  at("add").addEventListener("click", () => {
    const name = form["gs-name"].value.trim();
    if (!name) return;
    at("knobs").append(knob({ name }, form["gs-value"].value));
    form["gs-name"].value = form["gs-value"].value = "";
    toLink();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    toLink();
    form.querySelectorAll(".gs-refused, #gs-error").forEach((place) => { place.hidden = true; });
    form.querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
    at("error").hidden = at("result").hidden = true;
    busy(true);
    at("status").textContent = "Running ...";
    worker.postMessage({ ask: "compare", preset: form.preset.value, settings: settings(), seeds: seeds() });
  });
  at("stop").addEventListener("click", () => {
    worker.terminate();
    busy(false);
    at("run").disabled = true;
    at("status").textContent = "Stopped. Loading Python again ...";
    begin();
  });
  begin();
}
