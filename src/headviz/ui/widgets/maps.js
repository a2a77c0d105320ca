// Maps of one head over the same tokens. All of them share the window, the order and the cross-hair.
// Every text reaches the page through textContent or as drawn letters.
const roots = new WeakMap();
const EDGE = 7; // pixels between the words and what stands apart
const FINE = 3; // pixels of a cell, from which both maps stand side by side; smaller ones stand one below the other

const styled = (s, name, other) => getComputedStyle(s.wrap).getPropertyValue(name).trim() || other;
function written(value, digits, sign) {
  const text = value === 0 ? "0" : Math.abs(value) < 0.0001 ? value.toExponential(digits - 1) : value.toPrecision(digits);
  return (sign && value > 0 ? "+" : "") + text.replace(/^(-?)0\./, "$1.").replace(/-/g, "−");
}
const round = (v) => written(Number(v.toPrecision(2)), 2).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
async function unpack(bytes) {
  const long = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const d = JSON.parse(new TextDecoder().decode(await inflate(bytes.slice(4, 4 + long))));
  const n = d.queries.length * d.keys.length;
  let at = 4 + long;
  for (const m of d.maps) {
    const raw = await inflate(bytes.slice(at, at + m.size));
    at += m.size;
    m.values = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      const step = m.levels > 127 ? ((raw[i + n] << 24) >> 16) | raw[i] : (raw[i] << 24) >> 24;
      m.values[i] = (Math.sign(step) * step * step * m.top) / (m.levels * m.levels);
    }
  }
  return d;
}

// ---- what is shown: the order of rows and columns, the window on them, the ends of the colours
function arrange(s) {
  const d = s.d, K = d.keys.length, by = d.maps[d.maps.length - 1].values;
  const size = (r, k) => Math.abs(by[r * K + k]);
  const sorted = (n, apart, weight) => {
    const all = [...Array(n).keys()], words = all.filter((i) => !apart[i]);
    if (weight) words.sort((a, b) => weight(b) - weight(a) || a - b);
    return { places: [...words, ...all.filter((i) => apart[i])], words: words.length };
  };
  const columns = d.apart[1].flatMap((x, k) => (x ? [] : [k])), rows = d.apart[0].flatMap((x, r) => (x ? [] : [r]));
  const strong = s.order === "strongest";
  const row = strong && ((r) => columns.reduce((sum, k) => sum + size(r, k), 0));
  const column = s.query !== null ? (k) => size(s.query, k) : strong && ((k) => rows.reduce((sum, r) => sum + size(r, k), 0));
  s.rows = sorted(d.queries.length, d.apart[0], row);
  s.columns = sorted(K, d.apart[1], column);
  for (const m of d.maps) {
    let inside = 0, all = 0;
    m.values.forEach((v, i) => {
      const a = Math.abs(v);
      if (a > all) all = a;
      if (a > inside && !d.apart[0][Math.floor(i / K)] && !d.apart[1][i % K]) inside = a;
    });
    m.end = inside || all || 1;
    m.beyond = all > 1.005 * m.end ? all : 0;
  }
  if (!s.window) whole(s);
}
function whole(s) {
  s.window = [0, s.d.queries.length, 0, s.d.keys.length];
}
function zoom(s, factor) {
  const at = s.at || [(s.window[0] + s.window[1]) / 2, (s.window[2] + s.window[3]) / 2];
  const side = (low, high, n, middle) => {
    const size = Math.max(Math.min(n, 6), Math.min(n, Math.round((high - low) * factor)));
    const from = Math.max(0, Math.min(n - size, Math.round(middle - (middle - low) * (size / (high - low)))));
    return [from, from + size];
  };
  const [a, b, c, d] = s.window;
  s.window = [...side(a, b, s.d.queries.length, at[0]), ...side(c, d, s.d.keys.length, at[1])];
  draw(s);
}

// ---- drawing; the same for the page and for a saved file
function lookup(m, dark) {
  const stops = (dark ? m.dark : m.light).map(rgb), table = new Uint8ClampedArray(3 * 513);
  for (let i = 0; i <= 512; i++) {
    const place = (m.signed ? i / 512 : Math.max(0, i / 256 - 1)) * (stops.length - 1), left = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) table[3 * i + c] = stops[left][c] + (stops[left + 1][c] - stops[left][c]) * (place - left);
  }
  return table;
}
function plan(s, width, text) {
  const [r0, r1, c0, c1] = s.window, d = s.d, nr = r1 - r0, nc = c1 - c0;
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `${text}px sans-serif`;
  const longest = (side, names) => Math.min(7 * text, Math.max(...side.places.slice(0).map((i) => ruler.measureText(names[i]).width)));
  const left = longest(s.rows, d.queries) + 8, top = longest(s.columns, d.keys) * 0.87 + 10;
  const gapX = c0 < s.columns.words && c1 > s.columns.words && s.columns.words ? EDGE : 0;
  const gapY = r0 < s.rows.words && r1 > s.rows.words && s.rows.words ? EDGE : 0;
  const w = Math.min(34, (width - left - gapX - 0.6 * top) / nc, Math.max(9, 680 / Math.max(nr, nc)));
  const h = Math.min(w, 720 / nr);
  return { left, top, gapX, gapY, w, h, nr, nc, text, width, height: top + nr * h + gapY + 2 };
}
function placeOf(p, i, first, words, size, gap, start) {
  return start + (i - first) * size + (gap && i >= words ? gap : 0);
}
function paintMap(s, m, ctx, p, dense, ink) {
  const d = s.d, [r0, r1, c0, c1] = s.window, K = d.keys.length, table = lookup(m, s.dark);
  const parts = (from, to, words) => [[from, Math.min(to, words)], [Math.max(from, words), to]].filter(([a, b]) => b > a);
  ctx.imageSmoothingEnabled = false;
  for (const [ra, rb] of parts(r0, r1, s.rows.words)) for (const [ca, cb] of parts(c0, c1, s.columns.words)) {
    const x = placeOf(p, ca, c0, s.columns.words, p.w, p.gapX, p.left), y = placeOf(p, ra, r0, s.rows.words, p.h, p.gapY, p.top);
    // where there are more cells than dots, a dot shows the strongest of its cells
    const across = Math.max(1, Math.min(cb - ca, Math.round((cb - ca) * p.w * dense))), down = Math.max(1, Math.min(rb - ra, Math.round((rb - ra) * p.h * dense)));
    const best = new Float32Array(across * down);
    for (let r = ra; r < rb; r++) {
      const line = Math.min(down - 1, Math.floor(((r - ra) * down) / (rb - ra))) * across, row = s.rows.places[r] * K;
      for (let c = ca; c < cb; c++) {
        const v = m.values[row + s.columns.places[c]], i = line + Math.min(across - 1, Math.floor(((c - ca) * across) / (cb - ca)));
        if (Math.abs(v) > Math.abs(best[i])) best[i] = v;
      }
    }
    const image = new ImageData(across, down);
    best.forEach((v, i) => {
      const part = Math.min(1, Math.abs(v) / m.end), size = Math.sign(v) * (s.scale === "linear" ? part : Math.sqrt(part));
      const at = 3 * (256 + Math.round(256 * size));
      image.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * i);
    });
    const cell = document.createElement("canvas");
    cell.width = across;
    cell.height = down;
    cell.getContext("2d").putImageData(image, 0, 0);
    ctx.drawImage(cell, x, y, (cb - ca) * p.w, (rb - ra) * p.h);
  }
  ctx.fillStyle = ink;
  ctx.font = `${p.text}px sans-serif`;
  names(s, ctx, p, null);
}
// the names at the sides: all where there is room, else every so many; ``only`` = the pointed row and column
function names(s, ctx, p, only) {
  const d = s.d, [r0, r1, c0, c1] = s.window;
  const name = (text) => (text.length > 14 ? text.slice(0, 13) + "…" : text);
  const write = (i, axis) => {
    ctx.save();
    if (axis) {
      const x = placeOf(p, i, c0, s.columns.words, p.w, p.gapX, p.left) + p.w / 2;
      ctx.translate(x, p.top - 4);
      ctx.rotate(-Math.PI / 3);
      ctx.textBaseline = "middle";
      ctx.fillText(name(d.keys[s.columns.places[i]]), 0, 0);
    } else {
      const y = placeOf(p, i, r0, s.rows.words, p.h, p.gapY, p.top) + p.h / 2;
      ctx.textAlign = "right";
      ctx.textBaseline = "middle";
      ctx.fillText(name(d.queries[s.rows.places[i]]), p.left - 4, y);
    }
    ctx.restore();
  };
  if (only) return only.forEach((i, axis) => write(i, axis));
  const room = p.text * 0.98;
  for (const [axis, from, to, size, words] of [[0, r0, r1, p.h, s.rows.words], [1, c0, c1, p.w, s.columns.words]]) {
    const step = Math.max(1, Math.ceil(room / size));
    for (let i = from; i < to; i++) if (i >= words ? (i - words) % step === 0 : (i - from) % step === 0 && (step === 1 || i + step <= Math.max(to, words))) write(i, axis);
  }
}
function draw(s) {
  if (!s.d || !s.wrap.clientWidth) return;
  s.dark = themeIsDark(s.wrap);
  const root = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16, dense = window.devicePixelRatio || 1;
  const many = Math.max(s.d.queries.length, s.d.keys.length);
  s.panels.classList.toggle("stacked", s.wrap.clientWidth / 2 - 90 < FINE * many);
  const ink = styled(s, "--st-text-color", "#1f2428");
  s.views.forEach((v, i) => {
    const m = s.d.maps[i], width = v.box.clientWidth, p = (v.plan = plan(s, width, (width < 420 ? 10 : 11) * (root / 16)));
    v.base = document.createElement("canvas");
    for (const c of [v.base, v.canvas]) { c.width = p.width * dense; c.height = p.height * dense; }
    v.canvas.style.width = p.width + "px";
    v.canvas.style.height = p.height + "px";
    const ctx = v.base.getContext("2d");
    ctx.scale(dense, dense);
    paintMap(s, m, ctx, p, dense, ink);
    v.title.textContent = m.name[0].toUpperCase() + m.name.slice(1);
    v.said.textContent = m.caption + (p.w * dense < 0.999 ? " A dot shows the strongest of its connections." : "");
    v.canvas.setAttribute("aria-label", `${m.name} of ${s.d.label}, ${p.nr} queries by ${p.nc} keys. Arrow keys point at a connection.`);
    legend(s, m, v);
  });
  const shown = (side, all, from, to) => JSON.stringify(side.places.slice(from, to).map((i) => all[i]));
  s.wrap.dataset.queries = shown(s.rows, s.d.queries, s.window[0], s.window[1]);
  s.wrap.dataset.keys = shown(s.columns, s.d.keys, s.window[2], s.window[3]);
  point(s);
  buttons(s);
}
const empty = (m) => !m.values.some((v) => v);
function legend(s, m, v) {
  v.ramp.style.visibility = empty(m) ? "hidden" : "";
  if (empty(m)) return v.ticks.replaceChildren(), (v.kind.textContent = "0 everywhere.");
  const stops = s.dark ? m.dark : m.light, at = s.scale === "linear" ? 0.5 : 0.25;
  v.ramp.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  const ends = m.signed ? [[-m.end, 0], [-m.end * at, 25], [0, 50], [m.end * at, 75], [m.end, 100]] : [[0, 0], [m.end * at, 50], [m.end, 100]];
  if (m.signed && ends.some(([value]) => round(value).length > 5)) ends.splice(3, 1), ends.splice(1, 1); // they would touch
  v.ticks.replaceChildren(...ends.map(([value, left]) => {
    const tick = el("span", "", round(value));
    tick.style.left = left + "%";
    return tick;
  }));
  const kind = s.scale === "linear" ? "Linear scale." : "Square-root scale: half the colour is a quarter of the value.";
  v.kind.textContent = kind + (m.beyond ? ` Fitted to the words; special tokens reach ${round(m.beyond)}.` : "");
}

// ---- the cross-hair: one for all maps, at a query and a key
function point(s) {
  const d = s.d, ink = styled(s, "--st-text-color", "#1f2428"), paper = styled(s, "--st-background-color", "#ffffff"), dense = window.devicePixelRatio || 1;
  for (const v of s.views) {
    const ctx = v.canvas.getContext("2d"), p = v.plan, [r0, r1, c0, c1] = s.window;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, v.canvas.width, v.canvas.height);
    ctx.drawImage(v.base, 0, 0);
    ctx.scale(dense, dense);
    if (s.drag && s.drag.to) {
      const [a, b] = [s.drag.from, s.drag.to];
      ctx.strokeStyle = ink;
      ctx.setLineDash([4, 3]);
      ctx.strokeRect(Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1]));
      ctx.setLineDash([]);
      continue;
    }
    if (!s.at || s.at[0] < r0 || s.at[0] >= r1 || s.at[1] < c0 || s.at[1] >= c1) continue;
    const x = placeOf(p, s.at[1], c0, s.columns.words, p.w, p.gapX, p.left), y = placeOf(p, s.at[0], r0, s.rows.words, p.h, p.gapY, p.top);
    const right = p.left + p.nc * p.w + p.gapX, bottom = p.top + p.nr * p.h + p.gapY;
    ctx.strokeStyle = ink;
    ctx.globalAlpha = 0.55;
    ctx.lineWidth = 1;
    for (const [x0, y0, w, h] of [[p.left, y, right - p.left, p.h], [x, p.top, p.w, bottom - p.top]]) ctx.strokeRect(x0 + 0.5, y0 + 0.5, w - 1, h - 1);
    ctx.globalAlpha = 1;
    ctx.lineWidth = s.locked ? 3 : 2;
    ctx.strokeRect(x, y, p.w, p.h);
    if (p.w < p.text || p.h < p.text) {
      // the pointed names may have no room of their own: on a background, so that they can be read
      ctx.fillStyle = paper;
      ctx.fillRect(0, y + p.h / 2 - p.text * 0.65, p.left - 1, p.text * 1.3);
      ctx.font = `bold ${p.text}px sans-serif`;
      ctx.fillStyle = paper;
      ctx.save();
      ctx.translate(x + p.w / 2, p.top - 4);
      ctx.rotate(-Math.PI / 3);
      ctx.fillRect(-1, -p.text * 0.65, 8 * p.text, p.text * 1.3);
      ctx.restore();
    }
    ctx.fillStyle = ink;
    ctx.font = `bold ${p.text}px sans-serif`;
    names(s, ctx, p, s.at);
  }
  read(s, d);
}
function read(s, d) {
  const K = d.keys.length;
  let r, k, lead = "";
  if (s.at) [r, k] = [s.rows.places[s.at[0]], s.columns.places[s.at[1]]];
  else {
    const last = [...d.maps].reverse().find((m) => !empty(m));
    if (!last) return s.read.replaceChildren(document.createTextNode("0 everywhere."));
    const by = last.values, inside = [...by.keys()].filter((i) => !d.apart[0][Math.floor(i / K)] && !d.apart[1][i % K]);
    const best = (inside.length ? inside : [...by.keys()]).reduce((a, b) => (Math.abs(by[b]) > Math.abs(by[a]) ? b : a));
    [r, k] = [Math.floor(best / K), best % K];
    lead = inside.length ? `Strongest ${last.name} between words: ` : `Strongest ${last.name}: `;
  }
  const rank = (m) => {
    if (empty(m)) return "everywhere";
    if (m.levels < 127) return "rounded"; // ties would all have one rank
    let over = 1;
    for (let c = 0; c < K; c++) if (Math.abs(m.values[r * K + c]) > Math.abs(m.values[r * K + k])) over++;
    return `rank ${over} of ${K} keys`;
  };
  const said = d.maps.map((m) => `${m.name} ${m.levels < 127 ? "≈ " : ""}${written(m.values[r * K + k], m.levels > 127 ? 3 : m.levels > 31 ? 2 : 1, m.signed)} (${rank(m)})`);
  s.read.replaceChildren(document.createTextNode(lead), el("b", "", `${d.queries[r]} → ${d.keys[k]}`), document.createTextNode(": " + said.join(" · ")));
}
function cellAt(s, v, e) {
  const box = v.canvas.getBoundingClientRect(), p = v.plan, [r0, r1, c0, c1] = s.window;
  const x = e.clientX - box.left, y = e.clientY - box.top;
  const side = (at, start, size, first, last, words, gap) => {
    let i = first + Math.floor((at - start) / size);
    if (gap && i >= words) i = Math.max(words, first + Math.floor((at - start - gap) / size));
    return at < start || i >= last ? null : i;
  };
  const r = side(y, p.top, p.h, r0, r1, s.rows.words, p.gapY), c = side(x, p.left, p.w, c0, c1, s.columns.words, p.gapX);
  return { at: r === null || c === null ? null : [r, c], row: x < p.left ? r : null, x, y };
}

// ---- the controls
function build(s) {
  s.bar = s.wrap.appendChild(el("div", "bar"));
  s.read = s.wrap.appendChild(el("div", "read"));
  s.read.setAttribute("role", "status");
  s.panels = s.wrap.appendChild(el("div", "panels"));
  s.buttons = {};
  const group = (name, ...made) => {
    const box = s.bar.appendChild(el("span", "group"));
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", name);
    if (name !== "Zoom") box.appendChild(el("span", "", name));
    for (const [id, text, action] of made) {
      const node = (s.buttons[id] = box.appendChild(el("button", "", text)));
      node.type = "button";
      node.addEventListener("click", () => action());
    }
  };
  const look = (changed) => {
    Object.assign(s, changed);
    if (changed.order) s.query = null;
    s.send("look", { scale: s.scale, order: s.order, n: (s.looks = (s.looks || 0) + 1) });
    again(s);
  };
  group("Colours", ["power", "square root", () => look({ scale: "power" })], ["linear", "linear", () => look({ scale: "linear" })]);
  group("Order", ["text", "as in the text", () => look({ order: "text" })], ["strongest", "strongest first", () => look({ order: "strongest" })],
    ["query", "keys by this query", () => { s.query = s.query === null && s.at ? s.rows.places[s.at[0]] : null; again(s); }]);
  group("Zoom", ["out", "−", () => zoom(s, 1.6)], ["in", "+", () => zoom(s, 0.6)], ["whole", "whole map", () => { whole(s); draw(s); }]);
  s.buttons.out.setAttribute("aria-label", "Zoom out");
  s.buttons.in.setAttribute("aria-label", "Zoom in");
  s.buttons.strongest.title = "Queries and keys by the sum of what they carry in " + s.d.maps[s.d.maps.length - 1].name;
  s.buttons.query.title = "The keys by what the pointed query gets from them in " + s.d.maps[s.d.maps.length - 1].name;
  s.views = s.d.maps.map((m, i) => {
    const box = s.panels.appendChild(el("figure", "panel"));
    box.style.margin = "0";
    const title = box.appendChild(el("h4")), canvas = box.appendChild(el("canvas"));
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    const scale = box.appendChild(el("div", "legend")), side = scale.appendChild(el("div"));
    const v = { box, title, canvas, ramp: side.appendChild(el("div", "ramp")), ticks: side.appendChild(el("div", "ticks")), kind: scale.appendChild(el("p")) };
    const foot = box.appendChild(el("div", "foot"));
    v.said = foot.appendChild(el("p"));
    saveButtons(foot, (columns) => mapPicture(s, i, columns), m.save);
    wire(s, v);
    return v;
  });
}
function buttons(s) {
  for (const id of ["power", "linear"]) s.buttons[id].setAttribute("aria-pressed", String(s.scale === id));
  for (const id of ["text", "strongest"]) s.buttons[id].setAttribute("aria-pressed", String(s.order === id && s.query === null));
  s.buttons.query.setAttribute("aria-pressed", String(s.query !== null));
  s.buttons.query.textContent = s.query === null ? "keys by this query" : `keys by “${s.d.queries[s.query]}”`;
  s.buttons.query.disabled = s.query === null && !s.at;
  const [a, b, c, d] = s.window;
  s.buttons.whole.disabled = s.buttons.out.disabled = b - a === s.d.queries.length && d - c === s.d.keys.length;
}
function again(s) {
  const places = s.at && [s.rows.places[s.at[0]], s.columns.places[s.at[1]]];
  arrange(s);
  if (places) s.at = [s.rows.places.indexOf(places[0]), s.columns.places.indexOf(places[1])];
  draw(s);
}
function go(s, at) {
  if (String(at) === String(s.at)) return;
  s.at = at;
  point(s);
  buttons(s);
}
function wire(s, v) {
  const c = v.canvas, mouse = (e) => e.pointerType === "mouse";
  c.addEventListener("pointerdown", (e) => { if (mouse(e) && e.button === 0) s.drag = { v, from: [cellAt(s, v, e).x, cellAt(s, v, e).y], start: cellAt(s, v, e).at }; });
  c.addEventListener("pointermove", (e) => {
    const now = cellAt(s, v, e);
    if (s.drag && s.drag.v === v && s.drag.start && now.at && Math.hypot(now.x - s.drag.from[0], now.y - s.drag.from[1]) > 8) {
      s.drag.to = [now.x, now.y];
      s.drag.end = now.at;
      return point(s);
    }
    if (!s.locked && now.at) go(s, now.at);
  });
  c.addEventListener("pointerup", (e) => {
    const drag = s.drag, now = cellAt(s, v, e);
    s.drag = null;
    if (drag && drag.to) {
      const [a, b] = [drag.start, drag.end];
      s.window = [Math.min(a[0], b[0]), Math.max(a[0], b[0]) + 1, Math.min(a[1], b[1]), Math.max(a[1], b[1]) + 1];
      return draw(s);
    }
    if (now.row !== null) { s.at = [now.row, s.at ? s.at[1] : s.window[2]]; s.buttons.query.click(); }
    else if (now.at) { s.locked = !(s.locked && String(s.at) === String(now.at)); s.at = now.at; point(s); buttons(s); }
  });
  c.addEventListener("pointerleave", () => { s.drag = null; if (!s.locked && !c.matches(":focus-visible")) go(s, null); });
  c.addEventListener("dblclick", () => { whole(s); draw(s); });
  c.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoom(s, e.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
  c.addEventListener("keydown", (e) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (e.key in moves) {
      const [r0, r1, c0, c1] = s.window, at = s.at || [r0, c0];
      go(s, [Math.max(r0, Math.min(r1 - 1, at[0] + moves[e.key][0])), Math.max(c0, Math.min(c1 - 1, at[1] + moves[e.key][1]))]);
      s.locked = true;
    } else if (e.key === "+") zoom(s, 0.6);
    else if (e.key === "-") zoom(s, 1.6);
    else if (e.key === "0") { whole(s); draw(s); }
    else if (e.key === "Escape") { s.locked = false; go(s, null); }
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
}

// ---- the picture for a file: the cells as an image, the names as letters, what the colours mean below
function mapPicture(s, i, columns) {
  const m = s.d.maps[i], width = MILLIMETRES[columns - 1] * 5, p = plan(s, width, 11), foot = 46, dark = s.dark;
  const canvas = document.createElement("canvas"), dense = 4, letters = [];
  canvas.width = width * dense;
  canvas.height = p.height * dense;
  const ctx = canvas.getContext("2d");
  ctx.scale(dense, dense);
  s.dark = false;
  paintMap(s, m, ctx, { ...p, text: 0 }, dense, "transparent");
  s.dark = dark;
  const escaped = (t) => String(t).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const write = (x, y, text, more = "") => letters.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${INK}" font-size="11" ${more}>${escaped(text)}</text>`);
  // a pen for ``names``: it knows where it stands, and whether its text is turned and ends there
  const pen = { save() { Object.assign(pen, { at: [0, 0], turn: 0, textAlign: "" }); }, restore() {}, translate(x, y) { pen.at = [x, y]; }, rotate(r) { pen.turn = (r * 180) / Math.PI; },
    fillText(text, x, y) {
      const [a, b] = [pen.at[0] + x, pen.at[1] + y];
      write(a, b, text, `dominant-baseline="central" text-anchor="${pen.textAlign === "right" ? "end" : "start"}" transform="rotate(${pen.turn.toFixed(0)} ${a.toFixed(1)} ${b.toFixed(1)})"`);
    } };
  names(s, pen, p, null);
  const y = p.height + 10, w = Math.min(240, width - p.left - 10), at = s.scale === "linear" ? 0.5 : 0.25;
  const ends = m.signed ? [[-m.end, 0], [-m.end * at, 0.25], [0, 0.5], [m.end * at, 0.75], [m.end, 1]] : [[0, 0], [m.end * at, 0.5], [m.end, 1]];
  if (!empty(m)) for (const [value, place] of ends) write(p.left + w * place, y + 21, round(value), `text-anchor="${place === 0 ? "start" : place === 1 ? "end" : "middle"}"`);
  write(p.left, y + 34, empty(m) ? `${m.name}: 0 everywhere` : `${m.name}, ${s.scale === "linear" ? "linear" : "square-root"} scale`);
  const stops = m.light.map((c, k) => `<stop offset="${k / (m.light.length - 1)}" stop-color="${c}"/>`).join("");
  const ramp = empty(m) ? "" : `<rect x="${p.left}" y="${y}" width="${w}" height="9" rx="3" fill="url(#ramp)"/>`;
  const svg = `<svg xmlns="${SVG}" font-family="${FONT}, Helvetica, Arial, sans-serif"><defs><linearGradient id="ramp">${stops}</linearGradient></defs>` +
    `<rect width="${width}" height="${p.height + foot}" fill="${PAPER}"/><image width="${width}" height="${p.height}" href="${canvas.toDataURL()}"/>${ramp}${letters.join("")}</svg>`;
  return { svg, width, height: p.height + foot };
}

export default function ({ data, parentElement, setTriggerValue }) {
  let s = roots.get(parentElement);
  if (!s) {
    const wrap = parentElement.appendChild(el("div", "wrap"));
    s = { wrap, at: null, locked: false, query: null, window: null, serial: 0 };
    roots.set(parentElement, s);
    s.watch = new ResizeObserver(() => { if (wrap.clientWidth !== s.width) { s.width = wrap.clientWidth; draw(s); } });
    s.watch.observe(wrap);
    s.themes = new MutationObserver(() => s.d && themeIsDark(s.wrap) !== s.dark && draw(s));
    s.themes.observe(document.documentElement, { attributes: true, subtree: false });
  }
  s.send = setTriggerValue;
  const serial = ++s.serial;
  if (data !== s.data) unpack(data).then((d) => {
    if (serial !== s.serial) return; // a newer head has come meanwhile
    const same = s.d && JSON.stringify([s.d.queries, s.d.keys]) === JSON.stringify([d.queries, d.keys]);
    s.data = data;
    s.d = d;
    if (!same) Object.assign(s, { at: null, locked: false, query: null, window: null });
    s.scale = d.scale;
    s.order = d.order;
    if (!s.views) build(s);
    arrange(s);
    draw(s);
    s.wrap.dataset.label = d.label;
  });
  else if (s.d && themeIsDark(s.wrap) !== s.dark) draw(s); // a new theme comes as a call with the same data
  return () => {
    s.watch.disconnect();
    s.themes.disconnect();
    roots.delete(parentElement);
    s.wrap.remove();
  };
}
