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
  } else {
    if (data.key.startsWith("arcs_")) isolateArcs(data.key, 240);
    saveButtons(box, (columns) => paperFigure(data, columns), data);
  }
  return () => box.remove();
}
