// What only the browser can do: copy the address, draw a figure for a file, one step of history per step of the user,
// a menu that closes.

// A change of page comes as two entries: the page's bare address, then the same with the view in it, which the server
// writes. Going back from the second would meet the first, and nothing would happen. So the second replaces the first,
// until the user does something on the page. A page that a button opens comes after the old page's address without its
// view, and replaces that. A link in the navigation keeps the view although its address is bare; so that going back to a
// bare address does not, it gets a mark when the page is left.
const MARK = "?story=0"; // means the same as no parameter
function tidyHistory() {
  if (window.__headvizHistory) return;
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  const state = { bare: false, cleared: false, path: location.pathname, back: () => {} };
  window.__headvizHistory = state;
  history.pushState = (data, unused, url) => {
    const next = new URL(url ?? location.href, location.href), same = next.pathname === location.pathname;
    if (same && next.search === location.search) return;
    const instead = same ? state.bare && ["", MARK].includes(location.search) : state.cleared;
    if (!same && !instead && !location.search) replace(history.state, "", location.pathname + MARK);
    (instead ? replace : push)(data, unused, url);
    state.cleared = same && !next.search && !instead;
    if (!same) {
      state.bare = !next.search;
      closeMenu();
    }
    state.path = next.pathname;
  };
  for (const kind of ["pointerdown", "keydown"])
    window.addEventListener(kind, () => (state.bare = state.cleared = false), { capture: true, passive: true });
  // within a page the server must be told: the address may be one that it has just written itself
  window.addEventListener("popstate", () => {
    if (location.pathname === state.path) state.back(location.search);
    state.bare = location.search === MARK;
    state.path = location.pathname;
  });
}
// On a narrow screen the list of pages lies over the page; once one is chosen, it would stay there.
function closeMenu() {
  document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
}
function button(text, label, action) {
  const node = document.createElement("button");
  node.type = "button";
  node.textContent = text;
  node.setAttribute("aria-label", label);
  node.addEventListener("click", () => action(node));
  return node;
}
async function copyAddress(node) {
  const before = node.textContent;
  try {
    await navigator.clipboard.writeText(window.location.href);
    node.textContent = "Copied";
  } catch {
    node.textContent = "Copy it from the address bar";
  }
  setTimeout(() => (node.textContent = before), 1600);
}
// The figure as its file has it: plotly draws a copy with another layout. Its tool for saving is the only handle on that;
// the link that it clicks is caught.
function paperFigure({ key, file, layouts, fonts }, columns) {
  const plot = document.querySelector(".st-key-" + key + " .js-plotly-plot");
  const tool = plot.querySelector('.modebar-btn[data-title^="Download plot"]'), [layout, names] = layouts[columns - 1];
  plot._context.toImageButtonOptions = { format: "svg", filename: file, width: layout.width, height: layout.height };
  const before = [plot.layout, plot.data];
  plot.layout = layout;
  plot.data = plot.data.map((trace, i) => ({ ...trace, name: names[i] ?? trace.name, ...(fonts[i] && { textfont: fonts[i] }) }));
  const create = URL.createObjectURL.bind(URL), blobs = new Map();
  URL.createObjectURL = (blob) => {
    const address = create(blob);
    blobs.set(address, blob);
    return address;
  };
  return new Promise((done) => {
    const caught = (event) => {
      const link = event.target;
      if (link.download !== file + ".svg" || !blobs.has(link.href)) return;
      event.preventDefault();
      document.removeEventListener("click", caught, true);
      URL.createObjectURL = create;
      done(blobs.get(link.href).text().then((svg) => ({ svg, width: layout.width, height: layout.height })));
    };
    document.addEventListener("click", caught, true);
    tool.click();
    [plot.layout, plot.data] = before;
  });
}
// A table for a file: rules as in a book, words to the left, numbers to the right. Texts are broken into lines where the
// page is too narrow for them.
function paperTable({ titles, rows, right }, columns) {
  const SIZE = 12, LINE = 16, GAP = 14, AIR = 7, EDGE = 4, MILLIMETRE = 5; // pixels, as of a figure on paper
  const pen = document.createElement("canvas").getContext("2d"), cells = [titles, ...rows];
  const long = (text, bold) => {
    pen.font = (bold ? "600 " : "") + SIZE + `px "${FONT}", Helvetica, Arial, sans-serif`;
    return pen.measureText(text).width;
  };
  const largest = (k, of) => Math.max(...cells.map((row, i) => of(row[k], i === 0)));
  const word = (text, bold) => Math.max(...text.split(" ").map((one) => long(one, bold)));
  const widths = titles.map((_, k) => largest(k, long));
  const least = titles.map((_, k) => largest(k, (text, bold) => (right[k] && !bold ? long(text) : word(text, bold))));
  const all = () => widths.reduce((sum, one) => sum + one, GAP * (titles.length - 1) + 2 * EDGE);
  const page = MILLIMETRES[columns - 1] * MILLIMETRE;
  while (all() > page) { // the widest that can gives way
    const k = widths.map((one, at) => [one > least[at] ? one : 0, at]).sort((a, b) => b[0] - a[0])[0];
    if (!k[0]) break;
    widths[k[1]] = Math.max(least[k[1]], k[0] - Math.max(1, Math.min(all() - page, k[0] / 10)));
  }
  const broken = (text, k, bold) => text.split(" ").reduce((lines, one) => {
    const longer = lines.length ? lines[lines.length - 1] + " " + one : one;
    return lines.length && long(longer, bold) <= widths[k] + 0.5 ? [...lines.slice(0, -1), longer] : [...lines, one];
  }, []);
  const svg = document.createElementNS(SVG, "svg"), width = Math.max(page, all());
  const start = (width - all()) / 2;
  const add = (tag, attributes, text) => {
    const node = svg.appendChild(document.createElementNS(SVG, tag));
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const paper = add("rect", { width, fill: PAPER });
  const rule = (y, thick) => add("line", { x1: start, x2: start + all(), y1: y, y2: y, stroke: INK, "stroke-width": thick });
  svg.setAttribute("font-family", `${FONT}, Helvetica, Arial, sans-serif`);
  let y = 1;
  rule(y, 1.4);
  cells.forEach((row, i) => {
    const parts = row.map((text, k) => broken(text, k, i === 0)), lines = Math.max(...parts.map((part) => part.length));
    let x = start + EDGE;
    parts.forEach((part, k) => {
      const place = right[k] ? { x: x + widths[k], "text-anchor": "end" } : { x };
      part.forEach((line, n) => add("text", { ...place, y: y + AIR / 2 + LINE * (n + 0.8), fill: INK, "font-size": SIZE, "font-weight": i ? 400 : 600 }, line));
      x += widths[k] + GAP;
    });
    y += LINE * lines + AIR;
    if (i === 0) rule(y, 0.8);
  });
  rule(y, 1.4);
  paper.setAttribute("height", y + 1);
  return { svg, width, height: y + 1 };
}
// Pointing at a token of an arc picture leaves only its arcs. The picture has no handle on plotly's own functions, so
// its lines are faded where they are drawn: one group per line, in the order of the data.
function isolateArcs(key, tries) {
  const plot = document.querySelector(".st-key-" + key + " .js-plotly-plot");
  if (!plot || !plot.on || !plot.data) {
    if (tries) setTimeout(() => isolateArcs(key, tries - 1), 250);
    return;
  }
  if (plot.headvizArcs) return;
  plot.headvizArcs = true;
  const fade = (keep) => plot.querySelectorAll(".scatterlayer > .trace").forEach((node, i) => {
    const meta = plot.data[i] && plot.data[i].meta;
    node.style.opacity = meta && meta.query !== undefined && keep && !keep(meta) ? "0.04" : "";
  });
  plot.on("plotly_hover", ({ points }) => {
    const meta = points[0] && points[0].data.meta, at = points[0] && points[0].pointNumber;
    if (meta && meta.end) fade((arc) => arc[meta.end] === at);
  });
  plot.on("plotly_unhover", () => fade(null));
}
// Page down and page up turn the steps of the demonstration, also after a click on a switch: a field keeps all keys.
function turnFromSwitches() {
  if (window.__headvizTurns) return;
  window.__headvizTurns = true;
  window.addEventListener("keydown", (e) => {
    if (!["PageDown", "PageUp"].includes(e.key) || !e.target.matches?.("input[type=checkbox], input[type=radio]")) return;
    if (!document.querySelector(".st-key-story_next")) return;
    e.preventDefault();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: e.key, code: e.code, keyCode: e.keyCode, which: e.keyCode, bubbles: true }));
  }, true);
}
// A step begins at its top.
function beginStep(step) {
  turnFromSwitches();
  if (window.__headvizStep === step) return;
  window.__headvizStep = step;
  document.querySelector('[data-testid="stMain"]')?.scrollTo({ top: 0 });
}
export default function ({ data, parentElement, setTriggerValue }) {
  let box = parentElement.querySelector(".tools");
  if (!box) {
    box = document.createElement("div");
    box.className = "tools";
    parentElement.appendChild(box);
  }
  box.replaceChildren();
  if (data.kind === "link") {
    tidyHistory();
    window.__headvizHistory.back = (search) => setTriggerValue("back", { search, at: Date.now() });
    box.appendChild(button("Copy link", "Copy link to this view", copyAddress));
  } else if (data.kind === "step") {
    beginStep(data.step);
  } else if (data.kind === "table") {
    saveButtons(box, (columns) => paperTable(data, columns), data);
  } else {
    if (data.key.startsWith("arcs_")) isolateArcs(data.key, 240);
    saveButtons(box, (columns) => paperFigure(data, columns), data);
  }
  return () => box.remove();
}
