// A run's steps one after another: the curve, the grid of heads that are off, and the answers to one's own texts move
// together. All of it has come with the page, so nothing is asked of the server.
const STEP_TIME = 700; // milliseconds that a step stays

function curveOf(s) {
  const ns = "http://www.w3.org/2000/svg", w = 200, h = 140, left = 42, low = h - 20;
  const svg = document.createElementNS(ns, "svg");
  const add = (tag, attributes, text) => {
    const node = svg.appendChild(document.createElementNS(ns, tag));
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  svg.setAttribute("viewBox", "0 0 " + w + " " + h);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", s.data.metric + " against the share of heads that are off");
  const { steps } = s.data, most = Math.max(...steps.map((t) => t.value)), top = Math.max(most, 1e-9);
  const x = (t) => left + (w - left - 8) * t.share, y = (t) => low - (low - 12) * Math.max(0, t.value) / top;
  add("line", { x1: left, x2: w - 8, y1: low, y2: low, class: "axis" });
  add("text", { x: left - 9, y: low, "text-anchor": "end" }, "0");
  add("text", { x: left - 9, y: 16, "text-anchor": "end" }, most.toFixed(2));
  add("text", { x: w - 8, y: h - 6, "text-anchor": "end" }, "100 % of the heads off");
  add("polyline", { points: steps.map((t) => x(t) + "," + y(t)).join(" "), class: "curve" });
  s.dots = steps.map((t) => add("circle", { cx: x(t), cy: y(t), r: 3 }));
  return svg;
}

function show(s, at) {
  s.at = at;
  const { steps, texts, rows, heads, metric } = s.data, step = steps[at];
  s.range.value = at;
  s.label.textContent = Math.round(100 * step.share) + " % of the heads off · " + metric + " " + step.value.toFixed(3);
  s.dots.forEach((dot, i) => dot.classList.toggle("now", i === at));
  drawGrid({
    parentElement: s.grid,
    setTriggerValue: () => {},
    data: {
      rows, heads, row_names: s.data.row_names, values: null, scale: null, off: step.off, removed: [], selected: null, marks: [],
      mark_name: "", grey: [], group: "", tips: [], mode: "select", chooses: false, seq: at + 1, name: "heads", title: "",
      label: "Heads that are off", numbers: false, digits: 0, compact: true, large: false, blank_zeros: true, max: 20, file: "headviz",
    },
  });
  s.texts.replaceChildren(...texts.map((text) => {
    const row = el("li"), now = text.answers[at], broken = text.breaks !== null && at >= text.breaks;
    row.dataset.changed = now.name !== text.answers[0].name;
    row.append(el("span", "text", text.text), el("b", "", now.name + " " + now.share));
    if (broken) row.appendChild(el("small", "", "breaks at " + Math.round(100 * steps[text.breaks].share) + " %"));
    return row;
  }));
}

function play(s) {
  clearInterval(s.timer);
  s.timer = null;
  if (s.button.textContent === "❚❚") { s.button.textContent = "▶"; return; }
  if (s.at >= s.data.steps.length - 1) show(s, 0);
  s.button.textContent = "❚❚";
  s.timer = setInterval(() => {
    if (s.at < s.data.steps.length - 1) show(s, s.at + 1);
    if (s.at >= s.data.steps.length - 1) play(s);
  }, STEP_TIME);
}

export default function ({ data, parentElement }) {
  let s = parentElement.playback;
  if (!s) {
    s = parentElement.playback = { at: 0, timer: null };
    s.box = parentElement.appendChild(el("div", "playback"));
    const bar = s.box.appendChild(el("div", "controls"));
    s.button = bar.appendChild(el("button", "", "▶"));
    s.button.type = "button";
    s.button.setAttribute("aria-label", "Play the run's steps");
    s.button.addEventListener("click", () => play(s));
    s.range = bar.appendChild(el("input"));
    s.range.type = "range";
    s.range.min = 0;
    s.range.setAttribute("aria-label", "Step");
    s.range.addEventListener("input", () => show(s, Number(s.range.value)));
    s.label = bar.appendChild(el("output"));
    s.parts = s.box.appendChild(el("div", "parts"));
    s.curve = s.parts.appendChild(el("div", "plot"));
    s.grid = s.parts.appendChild(el("div", "heads"));
    s.texts = s.parts.appendChild(el("ul"));
  }
  s.data = data;
  s.range.max = data.steps.length - 1;
  s.curve.replaceChildren(curveOf(s));
  show(s, Math.min(s.at, data.steps.length - 1));
  return () => {
    clearInterval(s.timer);
    delete parentElement.playback;
    s.box.remove();
  };
}
