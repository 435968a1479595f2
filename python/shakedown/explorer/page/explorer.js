// The page: the address contains the state of the controls and is the query; each answer replaces the previous one.

const token = new URLSearchParams(location.search).get("token") ?? "";
const form = document.getElementById("controls");
const by = (id) => document.getElementById(id);
const make = (name, ...children) => {
  const element = document.createElement(name);
  element.append(...children);
  return element;
};
// Colours that colour-blind readers can distinguish; lines also have different dashes.
const COLOURS = ["--key", "--signature", "--hello", "--violet", "--muted", "--rose"];
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

// A table with the cells that the command prints; suites may be wrapped at their slashes.
function table(id, { table: { head, cells, notes }, rows }) {
  const line = (tag, texts) => make("tr", ...texts.map((text) => make(tag, ...text.split(/(?<=\/)/).flatMap((part) => [part, make("wbr")]))));
  by(id).replaceChildren(line("th", head), ...cells.map((texts) => line("td", texts)));
  for (const cell of by(id).querySelectorAll("th")) cell.scope = "col";
  const failed = rows.filter((row) => row.error).map((row) => `${row.suite}: ${row.error}`);
  by(`${id}-notes`).replaceChildren(...[...failed, ...notes].filter(Boolean).map((note) => make("li", note)));
}

function draw(id, spec) {
  // Steady loads have no series, unstable queues no curve, connected radios no random access, circuits no shared airtime.
  const figure = by(id).closest("figure");
  figure.hidden = !spec.data.values.length;
  if (figure.hidden) return;
  const style = getComputedStyle(document.documentElement);
  const [ink, line, ...category] = ["--ink", "--line", ...COLOURS].map((name) => style.getPropertyValue(name).trim());
  const axis = { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line };
  const config = { background: "transparent", view: { stroke: null }, axis, legend: { labelColor: ink, titleColor: ink, orient: "bottom", columns: 1, labelLimit: 400, layout: { bottom: { direction: "vertical", anchor: "start" } } }, range: { category } };
  const whole = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", height: 220, autosize: { type: "fit-x", contains: "padding" }, config, ...spec };
  const options = { actions: { export: true, source: false, compiled: false, editor: false }, renderer: "svg", ast: true };
  window.vegaEmbed(by(id), whole, options).then(() => {
    // The menu's button is an image without an accessible name.
    by(id).querySelector("summary")?.setAttribute("aria-label", "Save this chart");
  });
}

const duration = (title, more = {}) => ({ type: "quantitative", title, axis: { format: "~s", ...more } });
// An axis next to the names of suites may be shorter than its title, which then begins below the names.
const beside = { titleAnchor: "end" };
const suite = { field: "suite", type: "nominal", title: null };
const lines = { color: suite, strokeDash: suite };
const notIn = (rows) => rows.filter((row) => !row.error);

const value = (found) => found?.estimate ?? found?.lower ?? 0;

function showPredictions(found) {
  table("rows", found);
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
    .map((part) => ({ suite: row.suite, message: `${order + 1} ${message.message}`, bytes: message.bytes, part, from: message[`${part}_start_s`], to: message[`${part}_end_s`] }))));
  draw("messages", { data: { values: work }, width: undefined, height: undefined, autosize: undefined, facet: { row: { ...suite, header: { labelOrient: "top", labelAnchor: "start", labelColor: getComputedStyle(document.documentElement).getPropertyValue("--ink").trim() } } }, resolve: { scale: { y: "independent" } },
    spec: { width: Math.max(160, by("messages").clientWidth - 190), height: { step: 15 }, transform: [{ calculate: "format(datum.to - datum.from, '.3s') + 's'", as: "takes" }], mark: { type: "bar", tooltip: { content: "data" }, minBandSize: 2 }, encoding: {
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

function showFleet(found) {
  const { rows } = found;
  table("fleet", found);
  by("links").hidden = !rows.some((row) => row.own_links);
  const series = notIn(rows).flatMap((row) => (row.series ?? []).map((one) => ({ suite: row.suite, ...one, "busy workers": one.busy_workers })));
  draw("storm", { data: { values: series }, mark: { type: "line", tooltip: true }, encoding: { x: { field: "start_s", ...duration("time (s)") }, y: { field: "in_flight", type: "quantitative", title: "clients" }, ...lines } });
  const over = (id, names, title, values, x = {}, y = {}) => draw(id, { data: { values }, transform: [{ fold: names, as: ["what", "count"] }], mark: { type: "line", tooltip: true }, encoding: {
    x: { field: "start_s", ...duration("time (s)"), ...x }, y: { field: "count", type: "quantitative", title, ...y }, color: suite, strokeDash: { field: "what", type: "nominal", title: null },
  } });
  over("server", ["busy workers", "waiting"], "workers, messages", series);
  const cells = notIn(rows).flatMap((row) => (row.access?.series ?? []).map(({ transmissions, collided, utilisation }, number) => {
    const per_s = (count) => count / row.series_s / row.replications;
    return { suite: row.suite, start_s: number * row.series_s, attempts: per_s(transmissions), collisions: per_s(collided), "from clients": utilisation[0], "to clients": utilisation[1] };
  }));
  // The series may have intervals without an opportunity of random access.
  const averaged = [{ bin: { maxbins: 100 } }, { aggregate: "mean" }];
  const ofCells = (id, names, title) => over(id, names, title, cells.some((one) => names.some((name) => one[name])) ? cells : [], ...averaged);
  ofCells("access", ["attempts", "collisions"], "attempts per second");
  ofCells("airtime", ["from clients", "to clients"], "utilisation of the cells");
}

async function answer() {
  const mine = ++asked;
  const current = () => mine === asked;
  // Aborts earlier requests.
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  const parameters = question();
  history.replaceState(null, "", `?${new URLSearchParams([["token", token], ...parameters])}`);
  const started = performance.now();
  const took = () => `${Math.round(performance.now() - started)} ms`;
  try {
    let refined = 1;
    // The first answer uses few replays; the precise answer follows, unless the first one is precise.
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
      const found = await ask("/simulate", parameters, signal);
      if (!current()) return;
      showFleet(found);
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
  const narrow = matchMedia("(max-width: 760px)");
  const fold = () => { by("scenario").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  if (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
  await answer();
}

start().catch((error) => { by("error").textContent = error.message; by("error").hidden = false; });
