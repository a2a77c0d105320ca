// Two small helpers that only the browser can do: copy the address, save a figure as a file.
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
function saveFigure(key, format, file) {
  const plot = document.querySelector(".st-key-" + key + " .js-plotly-plot");
  const tool = plot && plot.querySelector('.modebar-btn[data-title^="Download plot"]');
  if (!tool) return;
  plot._context.toImageButtonOptions = { format, filename: file, scale: format === "png" ? 3 : 1 };
  tool.click();
}
export default function ({ data, parentElement }) {
  let box = parentElement.querySelector(".tools");
  if (!box) {
    box = document.createElement("div");
    box.className = "tools";
    parentElement.appendChild(box);
  }
  box.replaceChildren();
  if (data.kind === "link") {
    box.appendChild(button("Copy link", "Copy link to this view", copyAddress));
  } else {
    for (const format of ["png", "svg"])
      box.appendChild(button("↓ " + format.toUpperCase(), "Save " + data.name + " as " + format.toUpperCase(),
        () => saveFigure(data.key, format, data.file)));
  }
  return () => box.remove();
}
