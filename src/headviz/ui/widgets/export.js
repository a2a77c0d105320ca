// Saving a picture: as PNG for one and for two columns of a page, SVG, PDF and LaTeX, with its caption as text. The
// picture is an SVG drawn on white in dark ink; no server and no network is involved. It is put in front of each
// component that has pictures.
const PAPER = "#ffffff", INK = "#1c2126", INCH = 25.4, DPI = 300, MILLIMETRES = [84, 174];
const FONT = "Source Sans"; // comes with Streamlit, so a file can hold it
const SVG = "http://www.w3.org/2000/svg";

// ``made`` draws the picture for a number of columns: {svg: element or text, width, height} in pixels.
// ``texts``: {file, caption, tex}.
function saveButtons(box, made, texts) {
  const open = el("button", "", "↓ Save"), forms = el("span", "forms");
  open.type = "button";
  open.setAttribute("aria-expanded", "false");
  forms.hidden = true;
  forms.setAttribute("role", "group");
  forms.setAttribute("aria-label", "Save as");
  open.addEventListener("click", () => {
    forms.hidden = !forms.hidden;
    open.setAttribute("aria-expanded", String(!forms.hidden));
  });
  const text = (words, kind) => new Blob([words], { type: kind });
  const kinds = {
    "PNG, one column": async () => download(await png(await picture(made, texts, 1)), texts.file + ".png"),
    "PNG, two columns": async () => download(await png(await picture(made, texts, 2)), texts.file + "-wide.png"),
    SVG: async () => download(text((await picture(made, texts, 2)).text, "image/svg+xml"), texts.file + ".svg"),
    PDF: async () => print(await picture(made, texts, 2), texts.file),
    LaTeX: () => download(text(texts.tex, "text/x-tex"), texts.file + ".tex"),
    Caption: () => download(text(texts.caption + "\n", "text/plain"), texts.file + ".txt"),
    All: async () => {
      const [one, two] = [await picture(made, texts, 1), await picture(made, texts, 2)];
      const files = { ".png": await png(one), "-wide.png": await png(two), ".svg": text(two.text), ".tex": text(texts.tex), ".txt": text(texts.caption + "\n") };
      download(await zip(Object.entries(files).map(([ending, blob]) => [texts.file + ending, blob])), texts.file + ".zip");
    },
  };
  for (const [name, action] of Object.entries(kinds)) {
    const node = forms.appendChild(el("button", "", name));
    node.type = "button";
    node.addEventListener("click", action);
  }
  box.append(open, forms);
}

// The picture as the text of a file that stands alone: its size in millimetres, its font and its caption are in it.
async function picture(made, texts, columns) {
  await document.fonts.load(`12px "${FONT}"`);
  const { svg, width, height } = await made(columns), font = await fontFile(), wide = MILLIMETRES[columns - 1];
  const root = typeof svg === "string" ? new DOMParser().parseFromString(svg, "image/svg+xml").documentElement : svg;
  const tall = (wide * height) / width;
  for (const [name, value] of [["width", wide + "mm"], ["height", tall.toFixed(2) + "mm"], ["viewBox", `0 0 ${width} ${height}`], ["role", "img"]])
    root.setAttribute(name, value);
  const add = (tag, words) => {
    const node = document.createElementNS(SVG, tag);
    node.textContent = words;
    root.prepend(node);
  };
  if (font) add("style", `@font-face {font-family: "${FONT}"; font-weight: 200 900; src: url(${font})}`);
  add("desc", texts.caption);
  add("title", texts.file);
  return { text: new XMLSerializer().serializeToString(root), wide, tall, caption: texts.caption };
}
let fontRead = null;
function fontFile() {
  const rules = [...document.styleSheets].flatMap((sheet) => { try { return [...sheet.cssRules]; } catch { return []; } });
  const rule = rules.find((r) => r.style && r instanceof CSSFontFaceRule && r.style.fontFamily.includes(FONT) && r.style.fontStyle !== "italic");
  const found = rule && rule.style.src.match(/url\(["']?([^"')]+)/);
  if (!found) return null;
  fontRead = fontRead || fetch(new URL(found[1], rule.parentStyleSheet.href || location.href)).then((r) => r.blob()).then(dataUrl);
  return fontRead;
}
const dataUrl = (blob) => new Promise((done) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.readAsDataURL(blob);
});

async function png({ text, wide, tall, caption }) {
  const image = new Image(), canvas = document.createElement("canvas");
  canvas.width = Math.round((wide / INCH) * DPI);
  canvas.height = Math.round((tall / INCH) * DPI);
  image.src = await dataUrl(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const made = new Uint8Array(await (await new Promise((done) => canvas.toBlob(done))).arrayBuffer());
  const size = new Uint8Array(9);
  for (const at of [0, 4]) new DataView(size.buffer).setUint32(at, Math.round((DPI / INCH) * 1000));
  size[8] = 1; // per metre
  const first = 33; // bytes before the second chunk
  return new Blob([made.slice(0, first), chunk("pHYs", size), chunk("iTXt", new TextEncoder().encode("Description\0\0\0\0\0" + caption)), made.slice(first)], { type: "image/png" });
}
function chunk(name, body) {
  const all = new Uint8Array(body.length + 12), view = new DataView(all.buffer);
  view.setUint32(0, body.length);
  all.set(new TextEncoder().encode(name), 4);
  all.set(body, 8);
  view.setUint32(body.length + 8, crc(all.subarray(4, body.length + 8)));
  return all;
}
function crc(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (0xedb88320 & -(sum & 1));
  }
  return ~sum >>> 0;
}
// An archive of files that are stored as they are.
async function zip(files) {
  const parts = [], index = [], names = new TextEncoder();
  let at = 0;
  for (const [name, blob] of files) {
    const body = new Uint8Array(await blob.arrayBuffer()), called = names.encode(name);
    const about = [20, 0x800, 0, 0, 0x21, [crc(body)], [body.length], [body.length], called.length, 0];
    const head = fields([0x04034b50], ...about);
    parts.push(head, called, body);
    index.push(fields([0x02014b50], 20, ...about, 0, 0, 0, [0], [at]), called);
    at += head.length + called.length + body.length;
  }
  const size = index.reduce((sum, part) => sum + part.length, 0);
  return new Blob([...parts, ...index, fields([0x06054b50], 0, 0, files.length, files.length, [size], [at], 0)], { type: "application/zip" });
}
// little-endian numbers of two bytes, and of four where they stand in brackets
function fields(...numbers) {
  return new Uint8Array(numbers.flatMap((n) => [0, 8, 16, 24].slice(0, Array.isArray(n) ? 4 : 2).map((bits) => (Number(n) >>> bits) & 255)));
}

// The browser's own PDF, with letters as letters: a page of the picture's size, saved in the dialog for printing.
function print({ text, wide, tall }, file) {
  const frame = document.createElement("iframe"), before = document.title;
  frame.style.cssText = "position:fixed;left:-10000px;width:900px;height:900px;border:0";
  frame.title = file;
  frame.srcdoc = `<!doctype html><title>${file}</title><style>@page {size: ${wide}mm ${(tall + 0.2).toFixed(2)}mm; margin: 0} * {print-color-adjust: exact}` +
    ` body {margin: 0} svg {display: block}</style>${text}`;
  frame.onload = async () => {
    await frame.contentDocument.fonts.ready;
    document.title = file; // the name that the dialog offers
    frame.contentWindow.onafterprint = () => { document.title = before; setTimeout(() => frame.remove(), 1000); };
    frame.contentWindow.print();
  };
  document.body.append(frame);
}
