// One or two text fields that report while one types, after a short pause, so that a changed word shows at once.
// The browser's text wins until Python has seen it; values go in and out as values, never as markup.
const PAUSE = 200;
const roots = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let s = roots.get(parentElement);
  if (!s) {
    const box = document.createElement("div");
    box.className = "fields";
    parentElement.appendChild(box);
    s = { box, fields: [], seq: data.seq, timer: null };
    roots.set(parentElement, s);
  }
  s.send = setTriggerValue;
  // ``done``: Enter, or the field is left; the text is then kept
  const flush = (done) => {
    clearTimeout(s.timer);
    s.timer = null;
    const texts = s.fields.map((f) => f.value), text = JSON.stringify(texts);
    if (text === s.sent && !(done && s.typed)) return;
    s.sent = text;
    s.typed = !done;
    s.seq += 1;
    s.send("edit", { texts, done, seq: s.seq });
  };
  if (s.fields.length !== data.texts.length) {
    s.box.replaceChildren();
    s.fields = data.texts.map((_, i) => {
      const label = document.createElement("label");
      const name = document.createElement("span");
      const field = document.createElement("textarea");
      field.rows = 2;
      field.spellcheck = false;
      field.maxLength = data.limit;
      field.addEventListener("input", () => {
        clearTimeout(s.timer);
        s.typed = true;
        s.timer = setTimeout(() => flush(false), PAUSE);
      });
      field.addEventListener("blur", () => s.typed && flush(true));
      field.addEventListener("keydown", (e) => {
        if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); flush(true); }
      });
      label.append(name, field);
      s.box.appendChild(label);
      return field;
    });
  }
  s.fields.forEach((field, i) => {
    field.previousSibling.textContent = data.names[i];
    const stale = data.seq < s.seq || s.timer !== null;
    if (!stale && field.value !== data.texts[i]) field.value = data.texts[i];
  });
  if (data.seq >= s.seq && s.timer === null) {
    s.seq = data.seq;
    s.sent = JSON.stringify(s.fields.map((f) => f.value));
  }
  return () => {
    clearTimeout(s.timer);
    roots.delete(parentElement);
    s.box.remove();
  };
}
