"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (name, fields = {}, ...children) => {
    const element = Object.assign(document.createElement(name), fields);
    element.append(...children);
    return element;
  };
  document.getElementById("tools").hidden = false;

  // Theme: the system's, until the button is pressed.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // Suites: chosen once; rows and blocks of the others are hidden, their marks dimmed.
  const panel = document.getElementById("suites");
  const boxes = all("input[type=checkbox]", panel);
  const find = panel.querySelector("input[type=search]");
  const known = new Set(boxes.map((box) => box.value));
  const marks = all("[data-suite]").filter((one) => known.has(one.dataset.suite));
  const sheets = [];
  const select = () => {
    const chosen = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const one of marks) {
      const out = !chosen.has(one.dataset.suite);
      if (one instanceof SVGElement) one.classList.toggle("dim", out);
      else one.classList.toggle("out", out);
    }
    document.getElementById("chosen").textContent =
      chosen.size === boxes.length ? `all ${boxes.length}` : `${chosen.size} of ${boxes.length}`;
    for (const sheet of sheets) sheet();
  };
  const matches = (text, wanted) => wanted.every((word) => text.includes(word));
  const words = (field) => field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const listed = () => boxes.filter((box) => !box.parentElement.hidden);
  find.addEventListener("input", () => {
    const wanted = words(find);
    for (const box of boxes) box.parentElement.hidden = !matches(box.value.toLowerCase(), wanted);
  });
  panel.addEventListener("change", select);
  panel.addEventListener("click", (event) => {
    const choice = event.target.dataset.choose;
    if (!choice) return;
    const here = new Set(listed());
    for (const box of boxes) box.checked = choice === "all" || (choice === "only" && here.has(box));
    select();
  });
  addEventListener("click", (event) => { if (!panel.contains(event.target)) panel.open = false; });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") { panel.open = false; tip.hidden = true; }
  });

  // Tables: a heading sorts, a field filters.
  const factors = {
    ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, mJ: 1e-3, "µJ": 1e-6, J: 1, kJ: 1e3, kB: 1e3, MB: 1e6,
  };
  const figure = (cell) => {
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const found = /(-?[\d,]*\.?\d+)\s*([a-zµA-Z]*)/.exec(cell.textContent);
    return found ? Number(found[1].replaceAll(",", "")) * (factors[found[2]] ?? 1) : NaN;
  };
  const text = (row) => all("[title]", row).reduce((so, one) => so + " " + one.title, row.textContent).toLowerCase();
  const collator = new Intl.Collator(undefined, { numeric: true });
  for (const table of all("table.figures")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    if (rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", className: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const falling = head.ariaSort === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.ariaSort = falling ? "descending" : "ascending";
        const numeric = head.classList.contains("number");
        const way = falling ? -1 : 1;
        const keyed = rows.map((row) => {
          const cell = row.cells[column];
          return [row, numeric ? figure(cell) : cell.textContent];
        });
        // Rows without a figure stay at the end in both orders.
        keyed.sort(([, a], [, b]) => (numeric ? Number.isNaN(a) - Number.isNaN(b) || way * (a - b) || 0 : way * collator.compare(a, b)));
        rows.splice(0, rows.length, ...keyed.map(([row]) => row));
        body.append(...rows);
      });
    });
    if (rows.length < 6) continue;
    const field = make("input", { type: "search", placeholder: "filter rows", ariaLabel: "filter rows" });
    const count = make("output");
    const content = new Map();
    const filter = () => {
      const wanted = words(field);
      let shown = 0;
      for (const row of rows) {
        if (wanted.length && !content.has(row)) content.set(row, text(row));
        row.hidden = wanted.length > 0 && !matches(content.get(row), wanted);
        shown += !row.hidden && !row.classList.contains("out");
      }
      count.textContent = shown < rows.length ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
    };
    field.addEventListener("input", filter);
    sheets.push(filter);
    table.parentElement.before(make("div", { className: "filter" }, field, count));
  }

  // Tooltips of marks and cells.
  for (const title of all("figure svg title")) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  const tip = make("div", { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  const said = (element) => {
    const { tip: told, suite, v, r } = element.dataset;
    if (told !== undefined) return suite && !told.startsWith(suite) ? `${suite}\n${told}` : told;
    const head = element.closest("table").tHead.rows[0].cells[element.cellIndex];
    const unit = head.dataset.unit ?? "";
    return `${head.textContent}\n${Number(Number(v).toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 })} ${unit}${r ? ` (${r})` : ""}`;
  };
  const point = (event) => {
    const on = event.target.closest?.("[data-tip], th[data-unit] ~ td[data-v], td[data-v]");
    const there = on && (on.dataset.tip !== undefined || on.closest("table").tHead.rows[0].cells[on.cellIndex].dataset.unit);
    tip.hidden = !there;
    if (!there) return;
    tip.textContent = said(on);
    const { width, height } = tip.getBoundingClientRect();
    const edge = root.clientWidth - width - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, edge))}px`;
    tip.style.top = `${event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
  };
  for (const kind of ["pointermove", "pointerdown"]) addEventListener(kind, point);
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // Downloads: made from the page's content, so that no other file is needed.
  const save = (blob, name) => {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const drawing = (shown) => {
    const svg = all("svg", shown).find((one) => one.getBoundingClientRect().width) ?? shown.querySelector("svg");
    const copy = svg.cloneNode(true);
    for (const one of all("[data-tip]", copy)) {
      const title = document.createElementNS(copy.namespaceURI, "title");
      title.textContent = one.dataset.tip;
      one.prepend(title);
      one.removeAttribute("data-tip");
    }
    const defs = document.querySelector("defs").cloneNode(true);
    for (const pattern of defs.children) if (!copy.querySelector(`#${CSS.escape(pattern.id)}`)) copy.prepend(defs);
    const paper = document.createElementNS(copy.namespaceURI, "rect");
    for (const [key, value] of [["width", "100%"], ["height", "100%"], ["fill", "var(--paper)"]]) paper.setAttribute(key, value);
    defs.after(paper);
    // Files use the light colours, for print.
    const before = root.dataset.theme;
    root.dataset.theme = "light";
    const style = getComputedStyle(root);
    const written = new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    return { written, width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
  };
  const pixels = async ({ written, width, height }) => {
    const image = new Image(2 * width, 2 * height);
    image.src = URL.createObjectURL(new Blob([written], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = make("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => { canvas.toBlob(done); });
  };
  const unpacked = (packed) => {
    const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
  };
  for (const link of all(".downloads a")) {
    link.addEventListener("click", async (event) => {
      const { form, gz } = link.dataset;
      if (!gz && form !== "svg" && form !== "png") return;
      event.preventDefault();
      const shown = link.closest("figure");
      if (gz) save(await unpacked(gz), link.download);
      else if (form === "svg") save(new Blob([drawing(shown).written], { type: "image/svg+xml" }), link.download);
      else save(await pixels(drawing(shown)), link.download);
    });
  }
})();
