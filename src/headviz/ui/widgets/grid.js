// The head grid. Layers run down, heads across. Every text reaches the page through textContent.
// Python owns the mask; the browser shows a change at once and sends the whole list of heads that are
// off, numbered, so that an answer to an older change never undoes a newer one.

const HATCH = "×";
const HOLD = 450; // milliseconds
const FINGER = 42; // pixels; part of a column shows that the board slides
const roots = new WeakMap();

const GREY = "grey: 95 % interval includes 0";
const empty = (d) => d.blank_zeros ? "; no number: " + (0).toFixed(d.digits) : ""; // zeros have no number

// of a cell: a value whose own interval includes 0 has the colour of 0
function colourAt(s, i) {
  return colourOf(s.data.scale, s.grey.has(i) ? 0 : s.data.values[i], s.dark);
}
function colourOf(scale, value, dark) {
  const stops = dark ? scale.dark : scale.light;
  let place = ((value - scale.lo) / (scale.hi - scale.lo)) * (stops.length - 1);
  place = Math.min(Math.max(place, 0), stops.length - 1);
  const left = Math.min(Math.floor(place), stops.length - 2);
  const a = rgb(stops[left]), b = rgb(stops[left + 1]);
  return a.map((x, i) => Math.round(x + (b[i] - x) * (place - left)));
}
function short(value, digits, blank) {
  if (value === null || value === undefined) return "";
  let text = value.toFixed(digits);
  if (Number(text) === 0) text = blank ? "" : (0).toFixed(digits);
  return text.replace(/^(-?)0\./, "$1.").replace("-", "−");
}
function rowName(s, l) {
  return s.data.row_names ? s.data.row_names[l] : "L" + l;
}
function headName(s, i) {
  const h = s.data.heads;
  return rowName(s, Math.floor(i / h)) + "·H" + (i % h);
}
// a row that begins a stack of its own: "cross 0" after "encoder 2"
function begins(s, l) {
  const names = s.data.row_names;
  return Boolean(names) && l > 0 && names[l].split(" ")[0] !== names[l - 1].split(" ")[0];
}

// Without numbers a glyph's size says how strong the value is, so that the picture needs no colour.
function sizeOf(s, i) {
  const d = s.data, value = d.values ? d.values[i] : null;
  if (s.numbers || value === null || !d.scale) return 1;
  if (s.grey.has(i)) return 0.36;
  const end = Math.max(Math.abs(d.scale.lo), Math.abs(d.scale.hi)) || 1;
  return 0.36 + 0.64 * Math.sqrt(Math.min(1, Math.abs(value) / end));
}

function build(s) {
  const { rows, heads } = s.data;
  s.wrap.replaceChildren();
  s.cells = [];
  s.title = s.wrap.appendChild(el("p", "title"));
  s.board = s.wrap.appendChild(el("div", "board"));
  s.board.setAttribute("role", "group");
  s.board.style.setProperty("--heads", heads);
  s.wrap.style.setProperty("--side", s.data.row_names ? "4.8rem" : "2rem");
  s.corner = s.board.appendChild(el("div", "corner"));
  s.columnHeads = [];
  s.rowHeads = [];
  s.letter = null;
  const toggles = s.data.mode === "toggle";
  for (let h = 0; h < heads; h++) {
    const node = s.board.appendChild(el(toggles ? "button" : "div", "head", (heads <= 12 ? "H" : "") + h));
    node.dataset.column = h;
    s.columnHeads.push(node);
  }
  for (let l = 0; l < rows; l++) {
    const first = begins(s, l) ? " begins" : "";
    const node = s.board.appendChild(el(toggles ? "button" : "div", "head side" + first, rowName(s, l)));
    node.dataset.layer = l;
    s.rowHeads.push(node);
    for (let h = 0; h < heads; h++) {
      const cell = s.board.appendChild(el("button", "cell" + first));
      cell.dataset.i = l * heads + h;
      const glyph = cell.appendChild(el("span", "glyph"));
      glyph.appendChild(el("span", "num"));
      s.cells.push(cell);
    }
  }
  s.legend = s.wrap.appendChild(el("div", "legend"));
  s.tools = s.wrap.appendChild(el("div", "tools"));
  s.larger = s.tools.appendChild(el("button", "larger", "larger cells"));
  s.larger.type = "button";
  s.larger.addEventListener("click", () => {
    s.large = !s.large;
    paint(s);
    s.cells[s.focus].scrollIntoView({ block: "nearest", inline: "center" });
  });
  saveButtons(s.tools, () => gridPicture(s), s.data.save);
  s.tip = s.wrap.appendChild(el("div", "tip"));
  s.tip.hidden = true;
  s.tip.setAttribute("role", "status");
  s.focus = Math.min(s.focus, rows * heads - 1);
}

function paint(s) {
  const d = s.data, dark = themeIsDark(s.wrap), removed = new Set(d.removed), marks = new Set(d.marks);
  s.dark = dark;
  if (s.title.textContent !== (d.title || "")) s.title.textContent = d.title || "";
  s.title.hidden = !d.title;
  s.wrap.style.setProperty("--max", d.max + "rem");
  s.board.setAttribute("aria-label", d.label);
  // a finger may want cells of its own width; the board then slides
  const fits = s.wrap.clientWidth / (d.heads + 1), narrow = fits > 0 && fits < FINGER && matchMedia("(pointer: coarse)").matches;
  const slides = narrow && Boolean(s.large), width = slides ? FINGER : s.board.clientWidth / (d.heads + 1);
  s.larger.hidden = !narrow;
  s.larger.setAttribute("aria-pressed", String(slides));
  s.board.dataset.slides = slides ? "1" : "0";
  const numbers = (s.numbers = d.numbers && width >= 26);
  // where "H10" would touch its neighbours, the number alone stands
  const letter = d.heads <= 12 && (width >= 27 || width === 0) ? "H" : "";
  if (s.letter !== letter) s.columnHeads.forEach((node, h) => (node.textContent = letter + h));
  s.letter = letter;
  s.board.style.setProperty("--digits", Math.min(d.large ? 22 : 12, Math.max(8.5, width * (d.large ? 0.38 : 0.3))) + "px");
  s.cells.forEach((cell, i) => {
    const value = d.values ? d.values[i] : null, off = s.off.has(i);
    const gone = removed.has(i), missing = !gone && d.values !== null && value === null;
    const marked = marks.has(i);
    const state = gone ? "removed from the model" : off ? "off" : d.mode === "toggle" ? "on" : "";
    // what the name means is said once, of the whole grid
    const spoken = value === null ? (missing ? "not measured" : "") : d.name.split(/[;:,]/)[0] + " " + value.toPrecision(3) + (s.grey.has(i) && value !== 0 ? ", its interval includes 0" : "");
    const label = [headName(s, i), spoken, state].filter(Boolean).join(", ");
    const c = gone || missing || d.values === null ? null : colourAt(s, i), size = off ? 1 : sizeOf(s, i);
    const text = gone || missing || value === null ? "" : numbers ? short(value, d.digits, d.blank_zeros) : value < 0 ? "−" : "";
    const drawn = [label, c, size, text, marked, d.mode].join("|");
    if (cell.drawn === drawn) return; // most cells stay as they are
    cell.drawn = drawn;
    cell.dataset.kind = gone ? "removed" : missing ? "missing" : "value";
    cell.dataset.off = off && !gone ? "1" : "0";
    const glyph = cell.firstChild;
    glyph.firstChild.textContent = text;
    glyph.style.backgroundColor = c ? "rgb(" + c.join(",") + ")" : gone || missing ? "" : "var(--st-secondary-background-color)";
    glyph.style.color = c ? inkOn("rgb(" + c.join(",") + ")") : "";
    cell.style.setProperty("--size", size);
    const mark = cell.querySelector(".mark");
    if (marked && !mark) cell.appendChild(el("span", "mark"));
    if (!marked && mark) mark.remove();
    cell.setAttribute("aria-label", label);
    if (d.mode === "toggle") cell.setAttribute("aria-pressed", String(!off && !gone));
    if (gone) cell.setAttribute("aria-disabled", "true");
    else cell.removeAttribute("aria-disabled");
  });
  paintChosen(s);
  for (const node of [...s.rowHeads, ...s.columnHeads]) {
    if (node.tagName !== "BUTTON") continue;
    const group = groupOf(s, node), row = node.dataset.layer !== undefined;
    const name = row ? rowName(s, Number(node.dataset.layer)) + ": toggle this layer" : "H" + node.dataset.column + ": toggle this column";
    const title = name + " (" + group.filter((i) => s.off.has(i)).length + " of " + group.length + " off)";
    if (node.title === title) continue;
    node.tabIndex = -1;
    node.type = "button";
    node.setAttribute("aria-label", name);
    node.title = title;
  }
  paintLegend(s, dark);
}

// the chosen head, and the one place in the tab order
function paintChosen(s) {
  s.cells.forEach((cell, i) => {
    const chosen = s.data.selected === i ? "1" : "0", tab = i === s.focus ? 0 : -1;
    if (cell.dataset.selected !== chosen) {
      cell.dataset.selected = chosen;
      if (s.data.mode !== "toggle") cell.setAttribute("aria-pressed", String(chosen === "1"));
    }
    if (cell.tabIndex !== tab) cell.tabIndex = tab;
  });
}

function paintLegend(s, dark) {
  const d = s.data, box = s.legend;
  s.tools.hidden = d.compact;
  const kinds = [];
  if (s.off.size || d.mode === "toggle") kinds.push(["switched off", "value", "1"]);
  if (d.values && d.values.some((v, i) => v === null && !d.removed.includes(i) && !s.off.has(i))) kinds.push(["not measured", "missing", "0"]);
  if (d.removed.length) kinds.push(["removed", "removed", "0"]);
  const drawn = JSON.stringify([dark, kinds, d.values !== null && [d.name, d.scale], s.greys, d.marks.length && d.mark_name]);
  if (box.drawn === drawn) return;
  box.drawn = drawn;
  box.replaceChildren();
  if (d.values !== null && d.scale) {
    box.appendChild(el("div", "name", d.name));
    const bar = box.appendChild(el("div", "bar"));
    const ramp = bar.appendChild(el("div", "ramp"));
    const stops = dark ? d.scale.dark : d.scale.light, loss = d.scale.loss; // a bar of losses runs from orange to blue too
    ramp.style.background = "linear-gradient(to " + (loss ? "left" : "right") + ", " + stops.join(",") + ")";
    const ticks = bar.appendChild(el("div", "ticks"));
    const ends = [[loss ? d.scale.hi : d.scale.lo, 0, "first"], [loss ? d.scale.lo : d.scale.hi, 100, "last"]];
    if (d.scale.lo < 0 && d.scale.hi > 0) ends.splice(1, 0, [0, ((loss ? d.scale.hi : -d.scale.lo) / (d.scale.hi - d.scale.lo)) * 100, ""]);
    for (const [value, place, cls] of ends) {
      const text = value === 0 ? "0" : String(Number(value.toPrecision(3))).replace("-", "−");
      const tick = ticks.appendChild(el("span", cls, text));
      tick.style.left = place + "%";
    }
  }
  if (s.greys) box.appendChild(el("span", "key", GREY + empty(d)));
  for (const [text, kind, off] of kinds) {
    const key = box.appendChild(el("span", "key"));
    const cell = key.appendChild(el("span", "cell"));
    cell.dataset.kind = kind;
    cell.dataset.off = off;
    cell.appendChild(el("span", "glyph")).appendChild(el("span", "num"));
    key.appendChild(el("span", "", text));
  }
  if (d.marks.length) {
    const key = box.appendChild(el("span", "key"));
    key.appendChild(el("span", "mark dot"));
    key.appendChild(el("span", "", d.mark_name));
  }
}

function groupOf(s, node) {
  const { rows, heads, removed } = s.data, gone = new Set(removed), out = [];
  for (let i = 0; i < rows * heads; i++) {
    const mine = node.dataset.layer !== undefined
      ? Math.floor(i / heads) === Number(node.dataset.layer) : i % heads === Number(node.dataset.column);
    if (mine && !gone.has(i)) out.push(i);
  }
  return out;
}

function commit(s, base) {
  s.seq += 1;
  paint(s);
  tellOthers(s, { off: [...s.off] });
  s.send("edit", { off: [...s.off].sort((a, b) => a - b), seq: s.seq, base: base ? [...base].sort((a, b) => a - b) : null });
}
function toggleGroup(s, group) {
  const allOff = group.length > 0 && group.every((i) => s.off.has(i));
  group.forEach((i) => (allOff ? s.off.delete(i) : s.off.add(i)));
  commit(s);
}
function solo(s, i) {
  // only this head of its layer stays on; asked again, the layer is whole again
  const heads = s.data.heads, first = i - (i % heads), gone = new Set(s.data.removed);
  const others = [];
  for (let k = first; k < first + heads; k++) if (k !== i && !gone.has(k)) others.push(k);
  const isSolo = !s.off.has(i) && others.every((k) => s.off.has(k));
  others.forEach((k) => (isSolo ? s.off.delete(k) : s.off.add(k)));
  s.off.delete(i);
}
function choose(s, i) {
  s.data.selected = i;
  paintChosen(s);
  tellOthers(s, { chosen: i });
  s.send("select", { head: i, n: (s.clicks = (s.clicks || 0) + 1) });
}

function point(s, i) {
  if (s.pointed !== undefined && s.cells[s.pointed]) delete s.cells[s.pointed].dataset.pointed;
  s.pointed = i === null ? undefined : i;
  if (i !== null && s.cells[i]) s.cells[i].dataset.pointed = "1";
}
function hideTip(s) {
  s.tip.hidden = true;
  tellOthers(s, { pointed: null });
}
function showTip(s, i) {
  const d = s.data, cell = s.cells[i];
  if (!cell || d.compact) return;
  tellOthers(s, { pointed: i });
  s.tipped = i;
  const lines = d.tips.map(([name, texts]) => [name, texts[i]]);
  const title = headName(s, i) + (s.off.has(i) ? " (off)" : ""), said = JSON.stringify([title, lines]);
  if (!s.tip.hidden && s.tip.said === said) return;
  s.tip.said = said;
  s.tip.replaceChildren(el("b", "", title));
  const list = s.tip.appendChild(el("dl"));
  for (const [name, text] of lines) list.append(el("dt", "", name), el("dd", "", text));
  s.tip.hidden = false;
  const box = s.wrap.getBoundingClientRect(), at = cell.getBoundingClientRect();
  const w = s.tip.offsetWidth, h = s.tip.offsetHeight;
  let left = at.left - box.left + at.width + 8;
  if (left + w > box.width) left = at.left - box.left - w - 8;
  if (left < 0) left = Math.max(0, Math.min(box.width - w, at.left - box.left - w / 2));
  let top = at.top - box.top + at.height / 2 - h / 2;
  if (left < at.left - box.left + at.width && left + w > at.left - box.left) top = at.bottom - box.top + 6;
  s.tip.style.left = left + "px";
  s.tip.style.top = Math.max(0, top) + "px";
}

function wire(s) {
  const w = s.wrap;
  const indexOf = (node) => {
    const cell = node && node.closest ? node.closest(".cell") : null;
    return cell && cell.dataset.i !== undefined ? Number(cell.dataset.i) : null;
  };
  const usable = (i) => i !== null && !s.data.removed.includes(i);
  w.addEventListener("pointerdown", (e) => {
    const i = indexOf(e.target);
    if (s.data.mode !== "toggle" || e.button !== 0 || !usable(i) || e.pointerType === "touch") return;
    s.before = new Set(s.off);
    s.drag = { start: i, turnOff: !s.off.has(i), moved: false };
    s.focus = i;
  });
  w.addEventListener("pointermove", (e) => {
    if (!s.drag) return;
    if (e.buttons === 0) { s.drag = null; return; }
    const i = indexOf(w.getRootNode().elementFromPoint(e.clientX, e.clientY));
    if (!usable(i) || (i === s.drag.start && !s.drag.moved)) return;
    s.drag.moved = true;
    for (const k of [s.drag.start, i]) s.drag.turnOff ? s.off.add(k) : s.off.delete(k);
    s.tip.hidden = true;
    paint(s);
  });
  // a finger that rests on a head looks at it and does not switch it
  w.addEventListener("touchstart", (e) => {
    const i = indexOf(e.target);
    s.held = null;
    s.holding = setTimeout(() => (s.held = i), HOLD);
  }, { passive: true });
  for (const kind of ["touchend", "touchmove", "touchcancel"]) w.addEventListener(kind, () => clearTimeout(s.holding), { passive: true });
  w.addEventListener("contextmenu", (e) => s.held !== null && s.held !== undefined && e.preventDefault());
  const end = () => {
    const drag = s.drag;
    s.drag = null;
    if (drag && drag.moved) { s.dragged = performance.now(); commit(s); }
  };
  w.addEventListener("pointerup", end);
  w.addEventListener("pointerleave", end);
  w.addEventListener("click", (e) => {
    const i = indexOf(e.target);
    if (i === null) {
      const head = e.target.closest("button.head");
      if (head) toggleGroup(s, groupOf(s, head));
      return;
    }
    s.focus = i;
    if (s.data.mode === "select" || (s.data.chooses && (e.shiftKey || s.held === i))) return choose(s, i);
    if (!usable(i) || performance.now() - (s.dragged || -1e4) < 250) return;
    if (e.detail === 2 && s.clickBase && s.clickBase.i === i) {
      const base = s.clickBase.off;
      s.off = new Set(base);
      solo(s, i);
      s.clickBase = null;
      return commit(s, base);
    }
    s.clickBase = { i, off: new Set(s.off) };
    s.off.has(i) ? s.off.delete(i) : s.off.add(i);
    commit(s);
  });
  w.addEventListener("pointerover", (e) => {
    const i = indexOf(e.target);
    if (i === null || s.drag) hideTip(s);
    else showTip(s, i);
  });
  w.addEventListener("pointerleave", () => hideTip(s));
  w.addEventListener("focusin", (e) => {
    const i = indexOf(e.target);
    if (i !== null && e.target.matches(":focus-visible")) showTip(s, i);
  });
  w.addEventListener("focusout", () => hideTip(s));
  w.addEventListener("keydown", (e) => {
    const i = indexOf(e.target), { rows, heads } = s.data;
    if (e.key === "Escape") return hideTip(s);
    const head = e.target.closest && e.target.closest("button.head");
    if (i === null && !head) return;
    const onTop = head && head.dataset.column !== undefined, onSide = head && head.dataset.layer !== undefined;
    let l = i !== null ? Math.floor(i / heads) : onSide ? Number(head.dataset.layer) : -1;
    let h = i !== null ? i % heads : onTop ? Number(head.dataset.column) : -1;
    const low = s.data.mode === "toggle" ? -1 : 0;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (e.key in moves) { l += moves[e.key][0]; h += moves[e.key][1]; }
    else if (e.key === "Home") { h = 0; if (e.ctrlKey) l = 0; }
    else if (e.key === "End") { h = heads - 1; if (e.ctrlKey) l = rows - 1; }
    else if (e.key === " " || e.key === "Enter") {
      e.preventDefault();
      if (head) return toggleGroup(s, groupOf(s, head));
      if (s.data.mode === "select") return choose(s, i);
      if (!usable(i)) return;
      s.off.has(i) ? s.off.delete(i) : s.off.add(i);
      return commit(s);
    } else if (e.key.toLowerCase() === "i" && s.data.chooses && i !== null && !e.ctrlKey && !e.metaKey) {
      e.preventDefault();
      return choose(s, i);
    } else if (e.key.toLowerCase() === "s" && s.data.mode === "toggle" && usable(i) && !e.ctrlKey && !e.metaKey) {
      solo(s, i);
      return commit(s);
    } else return;
    e.preventDefault();
    if (l < low || h < low || l >= rows || h >= heads || (l < 0 && h < 0)) return;
    const target = l < 0 ? s.columnHeads[h] : h < 0 ? s.rowHeads[l] : s.cells[l * heads + h];
    s.cells[s.focus].tabIndex = -1;
    if (l >= 0 && h >= 0) { s.focus = l * heads + h; target.tabIndex = 0; }
    else s.cells[s.focus].tabIndex = 0;
    target.focus();
  });
}

// ---- the picture for a file: what the colours mean stands below the grid
// words in lines that are no wider than this
function linesOf(words, width) {
  const pen = document.createElement("canvas").getContext("2d"), lines = [""];
  pen.font = `11px "${FONT}", Helvetica, Arial, sans-serif`;
  for (const word of words.split(" ")) {
    const last = lines.length - 1, longer = (lines[last] + " " + word).trim();
    if (lines[last] && pen.measureText(longer).width > width) lines.push(word);
    else lines[last] = longer;
  }
  return lines;
}
function gridPicture(s) {
  const d = s.data, size = 34, gap = 3, left = d.row_names ? 84 : 44, top = 30, right = left + d.heads * (size + gap);
  const svg = document.createElementNS(SVG, "svg");
  const add = (tag, attributes, text, parent = svg) => {
    const node = parent.appendChild(document.createElementNS(SVG, tag));
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const LINE = 14, below = (x, y, words) => {
    const lines = linesOf(words, right - x);
    lines.forEach((line, k) => write(x, y + LINE * k, line));
    return LINE * (lines.length - 1);
  };
  const write = (x, y, text, more = {}) => add("text", { x, y, fill: INK, "font-size": 11, ...more }, text);
  svg.setAttribute("font-family", `${FONT}, Helvetica, Arial, sans-serif`);
  const paper = add("rect", { fill: PAPER }), defs = add("defs", {});
  const lines = add("pattern", { id: "off", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, undefined, defs);
  add("rect", { width: 1, height: 5, fill: INK, "fill-opacity": 0.3 }, undefined, lines);
  for (let h = 0; h < d.heads; h++) write(left + h * (size + gap) + size / 2, top - 8, "H" + h, { "text-anchor": "middle" });
  for (let l = 0; l < d.rows; l++) write(left - 8, top + l * (size + gap) + size / 2 + 4, rowName(s, l), { "text-anchor": "end" });
  s.cells.forEach((cell, i) => {
    const x = left + (i % d.heads) * (size + gap), y = top + Math.floor(i / d.heads) * (size + gap);
    const value = d.values ? d.values[i] : null, gone = cell.dataset.kind === "removed", off = s.off.has(i);
    const full = !gone && !off && value !== null;
    const fill = full ? "rgb(" + colourOf(d.scale, s.grey.has(i) ? 0 : value, false).join(",") + ")" : off && !gone ? "url(#off)" : "none";
    const ink = full ? inkOn(fill) : INK, part = off ? 1 : sizeOf(s, i), inset = (size * (1 - part)) / 2;
    const box = { x: x + inset, y: y + inset, width: size * part, height: size * part, rx: 5, fill, stroke: full ? "none" : INK, "stroke-opacity": 0.4 };
    if (gone) box["stroke-dasharray"] = "3 3";
    add("rect", box);
    const text = off && !gone ? HATCH : gone ? "" : value === null ? (d.values ? "?" : "") : s.numbers ? short(value, d.digits, d.blank_zeros) : value < 0 ? "−" : "";
    if (text) write(x + size / 2, y + size / 2 + 4, text, { fill: ink, "font-size": text === HATCH ? 16 : 10, "text-anchor": "middle" });
    if (d.marks.includes(i)) add("circle", { cx: x + size - 6, cy: y + 6, r: 2.5, fill: ink });
  });
  let y = top + d.rows * (size + gap) + 14;
  if (d.scale && d.values) {
    const w = Math.min(240, right - left), ramp = add("linearGradient", { id: "ramp" }, undefined, defs), loss = d.scale.loss;
    const stops = loss ? [...d.scale.light].reverse() : d.scale.light;
    y += below(left, y + 8, d.name);
    stops.forEach((c, k) => add("stop", { offset: k / (stops.length - 1), "stop-color": c }, undefined, ramp));
    add("rect", { x: left, y: y + 15, width: w, height: 9, rx: 3, fill: "url(#ramp)" });
    const ends = [[loss ? d.scale.hi : d.scale.lo, 0, "start"], [loss ? d.scale.lo : d.scale.hi, 1, "end"]];
    if (d.scale.lo < 0 && d.scale.hi > 0) ends.push([0, (loss ? d.scale.hi : -d.scale.lo) / (d.scale.hi - d.scale.lo), "middle"]);
    for (const [v, place, anchor] of ends)
      write(left + w * place, y + 37, String(Number(v.toPrecision(3))).replace("-", "−"), { "font-size": 10, "text-anchor": anchor });
    y += 46;
  }
  const sign = (text, draw) => {
    if (draw) draw(left, y);
    y += 18 + below(left + (draw ? 18 : 0), y + 10, text);
  };
  if (s.greys) sign(GREY + empty(d));
  if (d.marks.length) sign(d.mark_name, (x, at) => add("circle", { cx: x + 3, cy: at + 6, r: 2.5, fill: INK }));
  if (s.off.size) sign("switched off", (x, at) => {
    add("rect", { x, y: at, width: 12, height: 12, rx: 3, fill: "url(#off)", stroke: INK, "stroke-opacity": 0.4 });
    write(x + 6, at + 10, HATCH, { "text-anchor": "middle" });
  });
  const width = right + 10, height = y + 4;
  paper.setAttribute("width", width);
  paper.setAttribute("height", height);
  return { svg, width, height };
}

export default function ({ data, parentElement, setTriggerValue }) {
  let s = roots.get(parentElement);
  if (!s) {
    const wrap = el("div", "wrap");
    parentElement.appendChild(wrap);
    s = { wrap, off: new Set(), seq: 0, focus: 0, data: null };
    roots.set(parentElement, s);
    wire(s);
    s.watch = new ResizeObserver(() => s.data && s.cells && paint(s));
    s.watch.observe(wrap);
    s.themes = new MutationObserver(() => s.data && s.cells && themeIsDark(s.wrap) !== s.dark && paint(s));
    s.themes.observe(document.documentElement, { attributes: true, subtree: false });
    listen(s, (detail) => {
      if (!s.cells) return;
      if (detail.pointed !== undefined) point(s, detail.pointed);
      if (detail.off) { s.off = new Set(detail.off); paint(s); }
      if (detail.chosen !== undefined) { s.data.selected = detail.chosen; paintChosen(s); }
    });
  }
  s.send = setTriggerValue;
  const before = s.data;
  s.data = data;
  s.grey = new Set(data.grey);
  s.greys = data.grey.some((i) => data.values[i]); // zeros need no word
  if (!before || before.rows !== data.rows || before.heads !== data.heads || before.mode !== data.mode || String(before.row_names) !== String(data.row_names)) build(s);
  if (!before) s.seq = data.seq;
  if (data.seq >= s.seq) { s.off = new Set(data.off); s.seq = data.seq; }
  if (!before && data.selected !== null) s.focus = data.selected;
  paint(s);
  if (!s.tip.hidden) showTip(s, s.tipped); // new values for the head that is pointed at
  return () => {
    s.watch.disconnect();
    s.themes.disconnect();
    window.removeEventListener(LINK, s.linked);
    roots.delete(parentElement);
    s.wrap.remove();
  };
}
