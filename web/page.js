// The page: a pair of sentences, the grid of heads, and what the model answers with all heads and without those off.
import drawGrid from "./grid.js";
import { openModel, probabilities } from "./model.js";
import { wordPiece } from "./wordpiece.js";

const DASHBOARD = "http://127.0.0.1:8501/compare"; // where `headviz demo` opens on one's own machine
const REDRAW = 50; // milliseconds between two drawings of the grid while results come in

const $ = (id) => document.getElementById(id);
const facts = await (await fetch("data.json")).json();
const size = facts.rows * facts.heads;
const nameOf = (place) => `L${Math.floor(place / facts.heads)}·H${place % facts.heads}`;
const number = (p) => p.toFixed(2).replace(/^0/, "");
const encode = wordPiece(facts.tokenizer);

// ---- what is shown: all of it but the results stands in the address

const shown = { first: "", second: "", off: new Set(), ability: null, view: "cost" };
const past = []; // masks to go back to
const result = { full: null, now: null, toggled: Array(size).fill(null) }; // logits
let logits = null; // of the model, once it is loaded
let turn = 0; // of the last question; an answer to an older one is thrown away

function readAddress() {
  const given = new URLSearchParams(location.search);
  shown.first = given.get("a") ?? facts.start[0];
  shown.second = given.get("b") ?? facts.start[1];
  for (const head of (given.get("off") ?? "").split(",")) {
    const [layer, column] = head.split(".").map(Number);
    if (/^\d+\.\d+$/.test(head) && layer < facts.rows && column < facts.heads) shown.off.add(layer * facts.heads + column);
  }
}
// the dashboard reads the same parameters
function address() {
  const off = [...shown.off].sort((x, y) => x - y).map((i) => `${Math.floor(i / facts.heads)}.${i % facts.heads}`);
  const given = new URLSearchParams({ a: shown.first, b: shown.second });
  return `?${given}${off.length ? `&off=${off}` : ""}`;
}

// ---- questions to the model

async function ask({ samePair = false } = {}) {
  const mine = ++turn, tokens = encode(shown.first, shown.second), off = new Set(shown.off);
  result.toggled.fill(null);
  Object.assign(result, { now: null, full: samePair ? result.full : null });
  draw();
  if (!logits) return;
  const full = result.full ?? (await logits(tokens, new Set()));
  const now = off.size ? await logits(tokens, off) : full;
  if (mine !== turn) return;
  Object.assign(result, { full, now });
  draw();
  let drawn = performance.now();
  for (const place of order) {
    const answer = await logits(tokens, flipped(off, place));
    if (mine !== turn) return;
    result.toggled[place] = answer;
    if (performance.now() - drawn > REDRAW) {
      drawWhatIf();
      drawn = performance.now();
    }
  }
  drawWhatIf();
}

function flipped(off, place) {
  const other = new Set(off);
  if (!other.delete(place)) other.add(place);
  return other;
}
// An answer near chance is none: `at` is -1, as for no class, and `top` is the class that leads all the same.
function best(logits) {
  const chances = probabilities(logits), chance = Math.max(...chances), top = chances.indexOf(chance);
  const sure = chance >= 1 / chances.length + facts.near;
  return { at: sure ? top : -1, top, name: sure ? facts.classes[top] : "not sure", chance, chances };
}
function fromTo(before, after) {
  const now = before.at === after.at ? number(after.chances[before.top]) : after.at < 0 ? after.name : `${after.name} ${number(after.chance)}`;
  return `${before.name} ${number(before.chance)} → ${now}`;
}

function change(off) {
  past.push(new Set(shown.off));
  shown.off = off;
  ask({ samePair: true });
}
function undo() {
  if (!past.length) return;
  shown.off = past.pop();
  ask({ samePair: true });
}

// ---- drawing

const costs = { ...facts.costs, all: Array.from({ length: size }, (_, i) => mean(Object.values(facts.costs).map((row) => row[i]))) };
const order = [...costs.all.keys()].sort((a, b) => costs.all[b] - costs.all[a]); // the costliest head is asked for first
const carried = new Map();
for (const { name, heads } of facts.abilities) for (const head of heads) carried.set(head, [...(carried.get(head) ?? []), name]);
let seq = 0; // of the last click on the grid

function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}
// what a click on a head does to the answer, as far as it is known
function whatIf(place) {
  const other = result.toggled[place];
  if (!other || !result.now) return null;
  const before = best(result.now), after = best(other);
  return { lost: before.chance - after.chances[before.top], changes: before.at !== after.at, text: fromTo(before, after) };
}

function drawBoard() {
  const possible = Array.from({ length: size }, (_, i) => whatIf(i)), ofPair = shown.view === "pair";
  const values = ofPair ? possible.map((p) => p && p.lost) : costs[shown.ability ?? "all"];
  const strength = (v, i) => (ofPair && shown.off.has(i) ? 0 : Math.abs(v ?? 0)); // what is off has no colour
  const most = Math.max(0.1, ...values.map(strength)), end = ofPair ? most : Math.ceil(most);
  const chosen = facts.abilities.find((a) => a.name === shown.ability);
  const changing = [...possible.keys()].filter((i) => possible[i]?.changes);
  const costName = shown.ability ? `${shown.ability}: answers lost of 100 without the head` : "answers lost of 100 without the head";
  drawGrid({
    parentElement: gridRoot,
    setTriggerValue: (name, { off, seq: sent }) => {
      if (name !== "edit") return;
      seq = sent;
      change(new Set(off));
    },
    data: {
      rows: facts.rows, heads: facts.heads, row_names: null, values, seq, mode: "toggle", title: "", group: "",
      scale: { lo: -end, hi: end, ...facts.colours },
      off: [...shown.off], removed: [], selected: null, grey: [],
      marks: ofPair ? changing : chosen ? chosen.heads : [],
      mark_name: ofPair ? "changes the answer" : `carries ${shown.ability}`,
      tips: [
        ["a click", possible.map((p) => (p ? p.text : "…"))],
        ["cost, of 100", costs.all.map((v) => v.toFixed(1).replace("-", "−"))],
        ["carries", Array.from({ length: size }, (_, i) => (carried.get(i) ?? ["–"]).join(", "))],
      ],
      name: ofPair ? "lost by a click on the head: probability of the answer" : costName,
      label: `${facts.rows} layers of ${facts.heads} heads`,
      numbers: true, digits: ofPair ? 2 : 0, blank_zeros: true, compact: false, large: false, max: 40, file: "headviz",
    },
  });
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === shown.view);
}

function drawWhatIf() {
  drawBoard();
  const known = result.toggled.filter(Boolean).length, changing = order.filter((i) => whatIf(i)?.changes);
  const heads = changing.slice(0, 8).map((i) => `${nameOf(i)}${shown.off.has(i) ? " back on" : ""}`).join(", ");
  const more = changing.length > 8 ? ` and ${changing.length - 8} more` : "";
  $("tried").ariaBusy = known < size;
  $("tried").textContent = !result.now ? "…"
    : known < size ? `Trying each head: ${known} of ${size} …`
    : changing.length ? `${changing.length} of ${size} clicks would change this answer: ${heads}${more}.`
    : `None of ${size} clicks would change this answer.`;
}

function drawAnswers() {
  const { full, now } = result, count = shown.off.size;
  $("count").textContent = `${count} of ${size} off`;
  if (!now) return; // what stands there is replaced in a moment
  const before = best(full), after = best(now);
  const without = count === 1 ? nameOf([...shown.off][0]) : `${count} heads`;
  const changed = before.at !== after.at, pair = fromTo(before, after);
  $("short").textContent = count ? pair : `${before.name} ${number(before.chance)}`;
  $("short").dataset.changed = changed;
  $("sentence").textContent = !count ? `With all heads: ${before.name} ${number(before.chance)}.`
    : !changed ? `Without ${without} the answer stays ${pair}.`
    : after.at < 0 ? `Without ${without} the model no longer knows: ${before.name} ${number(before.chance)} → ${number(after.chances[before.at])}.`
    : `Without ${without} the answer changes: ${pair}.`;
  $("answers").dataset.full = JSON.stringify(full);
  $("answers").dataset.now = JSON.stringify(now);
  document.querySelectorAll("#bars .class").forEach((row, i) => {
    for (const [kind, answer] of [["all", before], ["now", after]]) {
      row.querySelector(`.${kind}`).style.setProperty("--part", answer.chances[i]);
      row.querySelector(`.${kind} + .value`).lastChild.textContent = number(answer.chances[i]);
    }
    row.dataset.best = after.at === i;
  });
}

function drawAbility() {
  const chosen = facts.abilities.find((a) => a.name === shown.ability);
  for (const chip of $("chips").children) chip.setAttribute("aria-pressed", chip.textContent === shown.ability);
  $("ability").hidden = !chosen;
  $("invite").hidden = Boolean(chosen);
  if (!chosen) return;
  const names = chosen.heads.map(nameOf).join(", ").replace(/, ([^,]*)$/, " and $1");
  const others = chosen.others < 0.05 ? "none" : chosen.others.toFixed(1);
  $("needs").textContent = `Without ${names} the model loses ${chosen.lost} of 100 answers about ${chosen.name}, and on average ${others} of 100 others.`;
  $("without").textContent = `Switch ${chosen.heads.length === 1 ? "it" : "them"} off`;
  $("without").onclick = () => change(new Set([...shown.off, ...chosen.heads]));
  $("without").disabled = chosen.heads.every((head) => shown.off.has(head));
  if ($("examples").dataset.ability !== chosen.name) drawExamples(chosen); // else the button with the focus would go
  for (const button of $("examples").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", button.textContent === `${shown.first} → ${shown.second}`);
  }
}

function drawExamples(chosen) {
  $("examples").dataset.ability = chosen.name;
  $("examples").replaceChildren(...chosen.examples.map(([first, second]) => {
    const item = document.createElement("li"), button = item.appendChild(document.createElement("button"));
    Object.assign(button, { type: "button", textContent: `${first} → ${second}` });
    button.onclick = () => {
      Object.assign(shown, { first, second });
      ask();
    };
    return item;
  }));
}

function drawPair() {
  for (const name of ["first", "second"]) {
    if ($(name).value !== shown[name]) $(name).value = shown[name];
  }
  const known = new Set(facts.words), text = `${shown.first} ${shown.second}`.toLowerCase().replaceAll("’", "'").replace(/n't\b/g, "n t");
  const strange = [...new Set(text.match(/[a-z]+|[0-9]+/g) ?? [])].filter((word) => !known.has(word));
  const cut = encode(shown.first, shown.second).cut ? ` The model reads ${facts.tokenizer.longest} tokens; the rest was cut.` : "";
  $("remark").textContent = (strange.length ? `The model never saw ${strange.slice(0, 5).map((w) => `“${w}”`).join(", ")}; it knows ${facts.words.length.toLocaleString("en")} words, and guesses outside them.` : "") + cut;
}

function draw() {
  history.replaceState(null, "", address());
  $("dashboard").href = DASHBOARD + address();
  $("undo").disabled = !past.length;
  $("whole").disabled = !shown.off.size;
  drawPair();
  drawAnswers();
  drawAbility();
  drawWhatIf();
}

// ---- the parts of the page that wait for a click

const gridRoot = $("grid").attachShadow({ mode: "open" });
const sheet = gridRoot.appendChild(document.createElement("link"));
Object.assign(sheet, { rel: "stylesheet", href: "grid.css" });

for (const name of facts.classes) {
  const row = document.createElement("div");
  row.className = "class";
  row.append(Object.assign(document.createElement("span"), { className: "name", textContent: name }));
  for (const [kind, words] of [["all", "all heads "], ["now", "without those that are off "]]) {
    const value = Object.assign(document.createElement("span"), { className: "value" });
    value.append(Object.assign(document.createElement("span"), { className: "words", textContent: words }), "");
    row.append(Object.assign(document.createElement("span"), { className: `bar ${kind}` }), value);
  }
  $("bars").append(row);
}
for (const { name } of facts.abilities) {
  const chip = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  chip.onclick = () => {
    shown.ability = shown.ability === name ? null : name;
    shown.view = "cost";
    draw();
  };
  $("chips").append(chip);
}
for (const name of ["first", "second"]) {
  $(name).addEventListener("input", () => {
    shown[name] = $(name).value.replaceAll("\n", " ");
    ask();
  });
}
document.querySelector("[data-view=cost]").textContent = `Over ${facts.examples.toLocaleString("en")} examples`;
for (const button of document.querySelectorAll("[data-view]")) {
  button.onclick = () => {
    shown.view = button.dataset.view;
    drawBoard();
  };
}
$("undo").onclick = undo;
$("whole").onclick = () => change(new Set());
$("copy").onclick = async () => {
  await navigator.clipboard.writeText(location.href);
  $("copy").textContent = "Copied";
  setTimeout(() => ($("copy").textContent = "Copy link"), 1500);
};
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("textarea");
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) {
    event.preventDefault();
    undo();
  }
});
// the grid repaints when an attribute of the page changes
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches }) => (document.documentElement.dataset.dark = matches));

readAddress();
draw();
try {
  logits = await openModel("demo.onnx", facts.rows, facts.heads);
  await ask();
} catch (error) {
  $("sentence").textContent = `This browser cannot run the model (${error.message}). An installed headviz can: pip install headviz`;
}
if ("serviceWorker" in navigator) navigator.serviceWorker.register("offline.js");
