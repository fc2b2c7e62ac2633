// Python with groupstorm, off the page's own thread: it answers {presets} and {compare} and tells how far it is.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ready = (async () => {
  const python = await loadPyodide();
  const packages = await fetch(new URL("groupstorm.zip", import.meta.url));
  if (!packages.ok) throw new Error(`groupstorm.zip: ${packages.status}`);
  python.unpackArchive(await packages.arrayBuffer(), "zip", { extractDir: "/packages" });
  python.runPython("import sys; sys.path.insert(0, '/packages')");
  return python.pyimport("storm");
})();

self.onmessage = async ({ data }) => {
  try {
    const storm = await ready;
    if (data.ask === "presets") {
      postMessage({ told: "presets", ...JSON.parse(storm.presets()) });
      storm.get_ready(); // while the form is read
      return;
    }
    const progress = (done, all) => postMessage({ told: "progress", done, all });
    const answer = storm.compare(data.preset, JSON.stringify(data.settings), data.seeds, progress);
    postMessage({ told: "result", ...JSON.parse(answer) });
  } catch (problem) {
    postMessage({ told: "result", error: String(problem).trim().split("\n").at(-1) });
  }
};
