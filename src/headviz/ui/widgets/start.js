// The steps of the demonstration in one line. Put away, they stay away in this browser until they are asked for.
const AWAY = "headviz-start-away";

function remember(away) {
  try {
    if (away) localStorage.setItem(AWAY, "1");
    else localStorage.removeItem(AWAY);
  } catch { /* a browser that keeps nothing shows the line again */ }
}
function isAway() {
  try {
    return localStorage.getItem(AWAY) === "1";
  } catch {
    return false;
  }
}
export default function ({ data, parentElement, setTriggerValue }) {
  let nav = parentElement.querySelector("nav");
  const first = !nav;
  if (first) {
    nav = parentElement.appendChild(document.createElement("nav"));
    nav.setAttribute("aria-label", "First steps");
    nav.asked = data.asked;
  }
  if (data.asked !== nav.asked || (first && data.asked && data.asked !== Number(window.__headvizAsked || 0))) remember(false);
  nav.asked = window.__headvizAsked = data.asked;
  nav.replaceChildren();
  nav.hidden = isAway();
  data.steps.forEach((step, i) => {
    const link = nav.appendChild(document.createElement("a"));
    link.href = step.href;
    const number = link.appendChild(document.createElement("b"));
    number.textContent = i + 1;
    link.appendChild(document.createElement("span")).textContent = step.title;
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
      event.preventDefault();
      setTriggerValue("go", { step: i + 1, at: Date.now() });
    });
  });
  const close = nav.appendChild(document.createElement("button"));
  close.type = "button";
  close.textContent = "✕";
  close.title = "Put these steps away; First steps brings them back";
  close.setAttribute("aria-label", close.title);
  close.addEventListener("click", () => {
    remember(true);
    nav.hidden = true;
  });
  return () => nav.remove();
}
