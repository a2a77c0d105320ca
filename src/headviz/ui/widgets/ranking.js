// Heads from the highest to the lowest, each with its interval on one common axis. A listbox: one place in the tab
// order, arrows move, Enter chooses. Every text reaches the page through textContent.
const roots = new WeakMap();

function row(s, entry, i) {
  const d = s.data, share = (x) => (100 * (x - d.lo)) / (d.hi - d.lo || 1);
  const node = el("div", "row");
  node.id = "rank-" + i;
  node.setAttribute("role", "option");
  node.setAttribute("aria-label", entry.spoken);
  node.title = entry.spoken;
  node.append(el("span", "place", String(i + 1)), el("span", "name", entry.name), el("span", "value", entry.text));
  const track = node.appendChild(el("span", "track"));
  if (d.lo < 0 && d.hi > 0) track.appendChild(el("i", "zero")).style.left = share(0) + "%";
  if (entry.low !== null) {
    const span = track.appendChild(el("i", "span"));
    span.style.left = share(entry.low) + "%";
    span.style.width = share(entry.high) - share(entry.low) + "%";
  }
  track.appendChild(el("i", "dot")).style.left = share(entry.value) + "%";
  node.addEventListener("click", () => choose(s, i));
  return node;
}
function choose(s, i) {
  s.data.selected = s.data.rows[i].head;
  s.marks = true;
  point(s, i);
  tellOthers(s, { chosen: s.data.selected });
  s.send("select", { head: s.data.selected, n: (s.clicks = (s.clicks || 0) + 1) });
}
// show which head is chosen, wherever it was chosen
function showChosen(s) {
  const chosen = s.data.rows.findIndex((r) => r.head === s.data.selected), node = s.rows[chosen];
  s.marks = chosen >= 0;
  const seen = node && node.offsetTop >= s.list.scrollTop && node.offsetTop + node.offsetHeight <= s.list.scrollTop + s.list.clientHeight;
  if (node && !seen) s.list.scrollTop = node.offsetTop - s.list.clientHeight / 2;
  point(s, chosen >= 0 ? chosen : s.at);
}
// move the keyboard's place; never scrolls anything but the list itself
function point(s, i) {
  s.at = Math.max(0, Math.min(s.rows.length - 1, i));
  const node = s.rows[s.at];
  if (!node) return;
  s.list.setAttribute("aria-activedescendant", node.id);
  s.rows.forEach((other, k) => {
    const chosen = String(k === s.at && s.marks);
    if (other.getAttribute("aria-selected") !== chosen) other.setAttribute("aria-selected", chosen);
  });
  const top = node.offsetTop, bottom = top + node.offsetHeight;
  if (top < s.list.scrollTop) s.list.scrollTop = top;
  else if (bottom > s.list.scrollTop + s.list.clientHeight) s.list.scrollTop = bottom - s.list.clientHeight;
}
function keyed(s, e) {
  const page = Math.max(1, Math.floor(s.list.clientHeight / 28) - 1), last = s.rows.length - 1;
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -last, End: last };
  if (e.key in moves) {
    s.marks = true;
    point(s, s.at + moves[e.key]);
  } else if (e.key === "Enter" || e.key === " ") choose(s, s.at);
  else return;
  e.preventDefault();
}

export default function ({ data, parentElement, setTriggerValue }) {
  let s = roots.get(parentElement);
  if (!s) {
    const box = parentElement.appendChild(el("div", "ranking"));
    s = { box, at: 0, names: box.appendChild(el("div", "names")), list: box.appendChild(el("div", "list")) };
    s.list.tabIndex = 0;
    s.list.setAttribute("role", "listbox");
    s.list.addEventListener("keydown", (e) => keyed(s, e));
    roots.set(parentElement, s);
    listen(s, (detail) => {
      if (detail.chosen === undefined || !s.rows) return;
      s.data.selected = detail.chosen;
      showChosen(s);
    });
  }
  s.send = setTriggerValue;
  const drawn = JSON.stringify([data.rows, data.names]);
  s.data = data;
  s.box.dataset.wide = data.rows.some((r) => r.name.length > 8) ? "1" : "0";
  s.list.setAttribute("aria-label", data.label);
  if (drawn !== s.drawn) {
    s.drawn = drawn;
    s.names.replaceChildren(...data.names.map((name) => el("span", "", name)));
    // the axis: its two ends, and zero where it lies between them with room to be read
    const axis = s.names.appendChild(el("span", "axis")), at = (100 * -data.lo) / (data.hi - data.lo || 1);
    axis.append(el("i", "", data.ends[0]), el("i", "", data.ends[1]));
    if (at > 25 && at < 75) axis.appendChild(el("i", "middle", "0")).style.left = at + "%";
    s.rows = data.rows.map((entry, i) => row(s, entry, i));
    s.list.replaceChildren(...s.rows);
  }
  const off = new Set(data.off);
  s.rows.forEach((node, i) => {
    const state = off.has(data.rows[i].head) ? "1" : "0";
    if (node.dataset.off !== state) node.dataset.off = state;
  });
  showChosen(s);
  return () => {
    window.removeEventListener(LINK, s.linked);
    roots.delete(parentElement);
    s.box.remove();
  };
}
