// Search for any target by a few letters: Ctrl+K opens it, Enter goes there. A head's number, alone or after "off" or
// "on", is a target too. Every text reaches the page through textContent.
const SHOWN = 9;

// each word of the question begins a word of the target; the target of this name comes first, then those that begin with it
function matching(data, question) {
  const asked = question.toLowerCase().trim();
  const head = asked.match(/^(?:(off|on)\s+)?l?(\d+)\s*[.·,\s]\s*h?(\d+)$/);
  if (head) {
    const [, way, layer, column] = head, l = Number(layer), h = Number(column);
    if (l >= data.rows || h >= data.heads) return [];
    const name = "L" + l + "·H" + h, place = l + "." + h;
    const kinds = way ? [way] : ["show", "off", "on"];
    const named = { show: "Head " + name, off: "Switch " + name + " off", on: "Switch " + name + " on" };
    return kinds.map((kind) => ({ name: named[kind], kind: "head", go: "head:" + kind + ":" + place }));
  }
  const wordsOf = (text) => text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const words = wordsOf(asked);
  const fits = (target) => {
    const parts = wordsOf((target.name + " " + target.kind).toLowerCase());
    return words.every((word) => parts.some((part) => part.startsWith(word)));
  };
  const first = ({ name }) => (name.toLowerCase() === asked ? 0 : name.toLowerCase().startsWith(asked) ? 1 : 2);
  return data.targets.filter(fits).sort((a, b) => first(a) - first(b));
}

export default function ({ data, parentElement, setTriggerValue }) {
  let s = parentElement.palette;
  if (!s) {
    s = parentElement.palette = { at: 0, found: [] };
    s.button = parentElement.appendChild(el("button", "open", "Go to"));
    s.button.type = "button";
    s.button.setAttribute("aria-label", "Go to");
    s.button.setAttribute("aria-keyshortcuts", "Control+K");
    s.button.title = "Heads, abilities, scores, pages, tasks and runs (Ctrl+K)";
    s.button.appendChild(el("kbd", "", "Ctrl K"));
    s.dialog = parentElement.appendChild(el("dialog"));
    s.dialog.setAttribute("aria-label", "Go to");
    s.field = s.dialog.appendChild(el("input"));
    s.field.placeholder = "4.10, off 8.6, negation, taylor, runs …";
    s.field.setAttribute("aria-label", "What to go to");
    s.list = s.dialog.appendChild(el("ul"));
    s.list.setAttribute("role", "listbox");
    const draw = () => {
      s.found = matching(s.data, s.field.value).slice(0, SHOWN);
      s.at = Math.min(s.at, Math.max(0, s.found.length - 1));
      s.list.replaceChildren(...s.found.map((target, i) => {
        const row = el("li", "", target.name);
        row.setAttribute("role", "option");
        row.setAttribute("aria-selected", String(i === s.at));
        row.appendChild(el("small", "", target.kind));
        row.addEventListener("click", () => go(i));
        return row;
      }));
      if (!s.found.length) s.list.appendChild(el("li", "none", "Nothing has this name."));
    };
    const go = (i) => {
      if (!s.found[i]) return;
      s.dialog.close();
      s.send("go", { to: s.found[i].go, at: Date.now() });
    };
    s.open = () => {
      s.field.value = "";
      s.at = 0;
      draw();
      if (!s.dialog.open) s.dialog.showModal();
      s.field.focus();
    };
    s.button.addEventListener("click", s.open);
    s.dialog.addEventListener("click", (e) => e.target === s.dialog && s.dialog.close());
    s.field.addEventListener("input", () => { s.at = 0; draw(); });
    s.field.addEventListener("keydown", (e) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (step) s.at = (s.at + step + s.found.length) % Math.max(1, s.found.length);
      if (step) draw();
      if (e.key === "Enter") go(s.at);
      if (step || e.key === "Enter") e.preventDefault();
      e.stopPropagation(); // letters are the page's keys, too
    });
    s.keys = (e) => {
      if (!(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey || e.key.toLowerCase() !== "k") return;
      e.preventDefault();
      e.stopPropagation();
      s.open();
    };
    window.addEventListener("keydown", s.keys, { capture: true });
  }
  s.data = data;
  s.send = setTriggerValue;
  return () => {
    window.removeEventListener("keydown", s.keys, { capture: true });
    delete parentElement.palette;
    s.button.remove();
    s.dialog.remove();
  };
}
