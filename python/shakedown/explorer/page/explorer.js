// The page: controls are the address, the address is the question, and answers replace each other in order.

const token = new URLSearchParams(location.search).get("token") ?? "";
const form = document.getElementById("controls");
const by = (id) => document.getElementById(id);
// Hues that colour-blind readers tell apart; lines have a dash as well.
const COLOURS = ["#2563ac", "#d9731f", "#1d8f86", "#8a5fbf", "#7a8794", "#b3466b"];
const PAUSE_MS = 120;
let asked = 0, pending = new AbortController();

async function ask(path, parameters = new URLSearchParams(), signal = null) {
  const answer = await fetch(`${path}?${parameters}`, { headers: { "X-Token": token }, signal });
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("application/json")) throw new Error(await answer.text());
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function question() {
  const found = new URLSearchParams();
  for (const suite of form.suites.value.split("\n").map((line) => line.trim()).filter(Boolean)) found.append("suites", suite);
  for (const control of form.elements) {
    if (!control.name || control.name === "suites") continue;
    if (control.type === "checkbox") { if (control.checked) found.set(control.name, "true"); }
    else if (control.name === "loss") { if (control.value !== "") found.set("loss", control.value / 100); }
    else if (control.value !== "") found.set(control.name, control.value);
  }
  return found;
}

function fill(values) {
  for (const [name, value] of Object.entries(values)) {
    const control = form.elements[name];
    if (!control) continue;
    if (name === "suites") control.value = value.join("\n");
    else if (control.type === "checkbox") control.checked = value === true || value === "true";
    else if (name === "loss") control.value = value === null || value === "" ? "" : +(value * 100).toPrecision(12);
    else control.value = value;
  }
}

// Figures with the unit that fits.
function scaled(value, units, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return `0 ${units[0][1]}`;
  const rounded = Math.abs(+value.toPrecision(digits));
  const [size, unit] = units.find(([size]) => rounded >= size) ?? units.at(-1);
  const text = (value / size).toPrecision(digits);
  return `${text.includes("e") ? +text : text} ${unit}`;
}
const time = (s, digits) => scaled(s, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]], digits);
const joules = (j, digits) => scaled(j, [[1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]], digits);
const percent = (share, digits = 3) => (share === null || share === undefined ? "–" : `${+(share * 100).toPrecision(digits)} %`);

function table(id, columns, rows) {
  const cells = (tag, texts) => {
    const line = document.createElement("tr");
    for (const text of texts) {
      const cell = document.createElement(tag);
      if (tag === "th") cell.scope = "col";
      // Suites may be broken at their slashes.
      for (const part of String(text).split(/(?<=\/)/)) cell.append(part, document.createElement("wbr"));
      line.append(cell);
    }
    return line;
  };
  const body = rows.map((row) => (row.error ? cells("td", [row.suite, row.error]) : cells("td", columns.map(([, show]) => show(row)))));
  by(id).replaceChildren(cells("th", columns.map(([name]) => name)), ...body);
}

function draw(id, spec) {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
  const axis = { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line };
  const config = { background: "transparent", view: { stroke: null }, axis, legend: { labelColor: ink, titleColor: ink, orient: "bottom", columns: 1, labelLimit: 400, layout: { bottom: { direction: "vertical", anchor: "start" } } }, range: { category: COLOURS } };
  const whole = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", height: 220, autosize: { type: "fit-x", contains: "padding" }, config, ...spec };
  const options = { actions: { export: true, source: false, compiled: false, editor: false }, renderer: "svg", ast: true };
  return window.vegaEmbed(by(id), whole, options).then(() => {
    // The menu's button is a picture without a name.
    by(id).querySelector("summary")?.setAttribute("aria-label", "Save this chart");
  });
}

const duration = (title, more = {}) => ({ type: "quantitative", title, axis: { format: "~s", ...more } });
// Beside the names of suites an axis may be shorter than its title, which then begins below them.
const beside = { titleAnchor: "end" };
const suite = { field: "suite", type: "nominal", title: null };
const lines = { color: suite, strokeDash: suite };
const notIn = (rows) => rows.filter((row) => !row.error);

// The digits that a range supports, and the mark of a figure's basis: as the command prints them.
const digitsOf = (value, { lower, upper }) => {
  if (lower === null || upper === null || value === 0) return 2;
  const relative = Math.max(upper - value, value - lower) / Math.abs(value);
  return relative < 0.02 ? 3 : relative < 1 ? 2 : 1;
};
const MARKS = { scaled: "~ ", assumed: "≈ " };

// A figure without an estimate has what bounds it; a statistic that lacks work is a lower bound.
const bounded = (show, found) => {
  if (!found) return "–";
  const { estimate } = found;
  if (estimate !== null) return estimate === 0 ? show(0) : (MARKS[found.basis] ?? "") + show(estimate, digitsOf(estimate, found));
  if (!found.lower) return found.upper === null ? "unknown" : `≤ ${show(found.upper)}`;
  return found.upper === null ? `≥ ${show(found.lower)}` : `${show(found.lower)} – ${show(found.upper)}`;
};
const value = (found) => found?.estimate ?? found?.lower ?? 0;
const statistic = (show, found, name) => {
  if (!found) return "–";
  const digits = found.mean === undefined || found.upper === undefined ? 3 : digitsOf(found.mean, found);
  return `${found.missing.length ? "≥ " : ""}${show(found[name], digits)}`;
};
const interval = (found) => (!found || found.lower === null || found.upper === null ? "–" : `${time(found.lower, 2)} – ${time(found.upper, 2)}`);

function showPredictions(found) {
  table("rows", [
    ["suite", (row) => row.suite], ["ready", (row) => statistic(time, row.ready_s, "mean")], ["90 % interval", (row) => interval(row.ready_s)], ["p99", (row) => statistic(time, row.ready_s, "p99")],
    ["client", (row) => bounded(time, row.client_s)], ["server", (row) => bounded(time, row.server_s)],
    ["transmission", (row) => time(row.transmission_s, 2)], ["queue wait", (row) => bounded(time, row.queue_s)],
    ["utilisation", (row) => bounded(percent, row.utilisation)], ["energy", (row) => bounded(joules, row.energy_j)],
    ["wake and tail", (row) => bounded(joules, row.wake_tail_j)],
  ], found.rows);
  const parts = notIn(found.rows).flatMap((row) => [["client", value(row.client_s)], ["server", value(row.server_s)], ["transmission", row.transmission_s], ["queue wait", value(row.queue_s)]]
    .map(([part, taken], order) => ({ suite: row.suite, part, value: taken, order })));
  draw("parts", { data: { values: parts }, height: 40 * found.rows.length, mark: { type: "bar", tooltip: true }, encoding: {
    y: { ...suite, sort: null, axis: { labelLimit: 170 } }, x: { field: "value", stack: "zero", ...duration("mean time until done (s)", beside) },
    color: { field: "part", type: "nominal", title: null, sort: null }, order: { field: "order" },
  } });
  const curve = found.rows.flatMap((row, number) => (found.curves[number] ?? []).map(([s, share]) => ({ suite: row.suite, s, share })));
  draw("curve", { data: { values: curve }, mark: { type: "line", tooltip: true, interpolate: "step-after" }, encoding: {
    x: { field: "s", ...duration("time until ready (s)") }, y: { field: "share", type: "quantitative", title: "share of handshakes", axis: { format: "%" } }, ...lines,
  } });
  const { edges_s: edges, shares } = found.densities;
  const density = found.rows.flatMap((row, number) => (shares[number] ?? []).flatMap((share, bin) => [edges[bin], edges[bin + 1]].map((s) => ({ suite: row.suite, s, share }))));
  draw("density", { data: { values: density }, mark: { type: "line", tooltip: true }, encoding: {
    x: { field: "s", ...duration("time until ready (s)") }, y: { field: "share", type: "quantitative", title: "share in an interval", axis: { format: "%" } }, order: { field: "s" }, ...lines,
  } });
  const work = found.rows.flatMap((row, number) => (found.messages[number] ?? []).flatMap((message, order) => ["client", "link", "server"]
    .filter((part) => message[`${part}_end_s`] > message[`${part}_start_s`])
    .map((part) => ({ suite: row.suite, message: `${order + 1} ${message.message}`, bytes: message.bytes, part, from: message[`${part}_start_s`], to: message[`${part}_end_s`], takes: time(message[`${part}_end_s`] - message[`${part}_start_s`]) }))));
  draw("messages", { data: { values: work }, width: undefined, height: undefined, autosize: undefined, facet: { row: { ...suite, header: { labelOrient: "top", labelAnchor: "start", labelColor: getComputedStyle(document.documentElement).getPropertyValue("--ink").trim() } } }, resolve: { scale: { y: "independent" } },
    spec: { width: Math.max(160, by("messages").clientWidth - 190), height: { step: 15 }, mark: { type: "bar", tooltip: { content: "data" }, minBandSize: 2 }, encoding: {
      y: { field: "message", type: "nominal", title: null, sort: null, axis: { labelLimit: 170 } }, x: { field: "from", ...duration("time since the client began (s)") }, x2: { field: "to" },
      color: { field: "part", type: "nominal", title: null, sort: ["client", "server", "link"] },
    } } });
  const energy = notIn(found.rows).flatMap((row) => Object.entries(row.energy_parts_j ?? {}).filter(([, value]) => value !== null).map(([part, value]) => ({ suite: row.suite, part, value })));
  draw("energy", { data: { values: energy }, height: 40 * found.rows.length, mark: { type: "bar", tooltip: true }, encoding: {
    y: { ...suite, sort: null, axis: { labelLimit: 170 } }, x: { field: "value", stack: "zero", ...duration("energy (J)", beside) }, color: { field: "part", type: "nominal", title: null },
  } });
  by("command").textContent = `${found.commands.predict}\n${found.commands.simulate}`;
  by("python").textContent = found.python;
}

function showFleet(rows) {
  table("fleet", [
    ["suite", (row) => row.suite], ["median", (row) => statistic(time, row.ready_s, "p50")], ["p95", (row) => statistic(time, row.ready_s, "p95")], ["p99", (row) => statistic(time, row.ready_s, "p99")],
    ["max", (row) => statistic(time, row.ready_s, "max")], ["queue wait", (row) => statistic(time, row.queue_wait_s, "mean")], ["utilisation", (row) => bounded(percent, row.utilisation)],
    ["failed", (row) => Object.values(row.failed).reduce((sum, one) => sum + one, 0).toLocaleString("en")], ["recovery time", (row) => bounded(time, row.recovery_s)],
    ["energy", (row) => (row.energy_j.mean === null ? "unknown" : joules(row.energy_j.mean))], ["wake and tail", (row) => bounded(joules, row.wake_tail_j)],
  ], rows);
  by("links").hidden = !rows.some((row) => row.own_links);
  const series = notIn(rows).flatMap((row) => (row.series ?? []).map((one) => ({ suite: row.suite, ...one, "busy workers": one.busy_workers })));
  draw("storm", { data: { values: series }, mark: { type: "line", tooltip: true }, encoding: { x: { field: "start_s", ...duration("time (s)") }, y: { field: "in_flight", type: "quantitative", title: "clients" }, ...lines } });
  const over = (id, names, title, values) => draw(id, { data: { values }, transform: [{ fold: names, as: ["what", "count"] }], mark: { type: "line", tooltip: true }, encoding: {
    x: { field: "start_s", ...duration("time (s)") }, y: { field: "count", type: "quantitative", title }, color: suite, strokeDash: { field: "what", type: "nominal", title: null },
  } });
  over("server", ["busy workers", "waiting"], "workers, messages", series);
  const cells = notIn(rows).flatMap((row) => (row.access?.series ?? []).map(({ transmissions, collided, utilisation }, number) => {
    const per_s = (count) => count / row.series_s / row.replications;
    return { suite: row.suite, start_s: number * row.series_s, attempts: per_s(transmissions), collisions: per_s(collided), "from clients": utilisation[0], "to clients": utilisation[1] };
  }));
  by("cells").hidden = cells.length === 0;
  if (cells.length === 0) return;
  over("access", ["attempts", "collisions"], "attempts per second", cells);
  over("airtime", ["from clients", "to clients"], "share of a cell's time", cells);
}

async function answer() {
  const mine = ++asked;
  const current = () => mine === asked;
  // What was asked before is not computed any more.
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  const parameters = question();
  history.replaceState(null, "", `?${new URLSearchParams([["token", token], ...parameters])}`);
  const started = performance.now();
  const took = () => `${Math.round(performance.now() - started)} ms`;
  try {
    let refined = 1;
    // A first answer from few replays; the whole one follows, unless it came at once.
    for (const coarse of [true, false]) {
      const found = await ask("/predict", new URLSearchParams([["coarse", coarse], ...parameters]), signal);
      if (!current()) return;
      showPredictions(found);
      refined = found.replications;
      by("error").hidden = true;
      by("state").textContent = `predicted ${found.coarse ? "coarsely " : ""}in ${took()}; ${found.coarse ? "refining" : "simulating"}…`;
      if (!found.coarse) break;
    }
    for (const replications of new Set([1, refined])) {
      parameters.set("replications", replications);
      const rows = await ask("/simulate", parameters, signal);
      if (!current()) return;
      showFleet(rows);
      by("state").textContent = `simulated ${replications === 1 ? "once" : `${replications} times`} in ${took()}`;
    }
  } catch (error) {
    if (!current()) return;
    by("error").textContent = error.message;
    by("error").hidden = false;
    by("state").textContent = "no answer";
  }
}

let timer;
function soon() {
  clearTimeout(timer);
  timer = setTimeout(answer, PAUSE_MS);
}

async function start() {
  const offered = await ask("/choices");
  const option = (value) => Object.assign(document.createElement("option"), { value, textContent: value });
  for (const [name, values] of [["device", offered.devices], ["server_device", offered.devices], ["server_software", offered.software], ["bearer", offered.bearers]]) form.elements[name].replaceChildren(...values.map(option));
  by("suites").replaceChildren(...offered.suites.map((value) => Object.assign(document.createElement("option"), { value })));
  fill(offered.defaults);
  const view = new URLSearchParams(location.search);
  if (view.has("suites")) fill({ suites: view.getAll("suites") });
  for (const [name, value] of view) if (name !== "suites" && name !== "token") fill({ [name]: value });
  if (offered.report) Object.assign(by("report"), { hidden: false, href: `/report?token=${token}` });
  form.addEventListener("input", (event) => { if (event.target.id !== "add") soon(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  by("add").addEventListener("change", () => {
    if (by("add").value) form.suites.value = `${form.suites.value.trimEnd()}\n${by("add").value}`;
    by("add").value = "";
    soon();
  });
  by("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    answer();
  });
  document.addEventListener("click", (event) => {
    const what = event.target.dataset?.copy;
    if (what) navigator.clipboard.writeText(what === "address" ? location.href : by(what).textContent).then(() => { by("state").textContent = "copied"; }, () => { by("state").textContent = "the browser refuses to copy; select the text"; });
  });
  if (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
  await answer();
}

start().catch((error) => { by("error").textContent = error.message; by("error").hidden = false; });
