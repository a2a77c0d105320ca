"""Figures drawn by plotly in a browser, and where their texts then stand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import plotly
from matplotlib.image import imread
from plotly.graph_objects import Figure

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PAGE = "<!doctype html><meta charset='utf-8'><body style='margin:0;background:#fff'><div id='plot'></div>"
TEXTS = """() => {
  const plot = document.getElementById('plot'), out = [];
  for (const node of plot.querySelectorAll('.main-svg text')) {
    const style = getComputedStyle(node), box = node.getBBox(), m = node.getScreenCTM();
    if (!node.textContent.trim() || style.visibility === 'hidden' || style.display === 'none' || !box.width) continue;
    let opacity = Number(style.fillOpacity);
    for (let up = node; up !== plot; up = up.parentNode) opacity *= Number(getComputedStyle(up).opacity);
    if (opacity < 0.01) continue;
    const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([i, j]) => {
      const x = box.x + i * box.width, y = box.y + j * box.height;
      return [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f];
    });
    let clip = null;  // the part of the picture in which it is seen
    for (let up = node; up !== plot; up = up.parentNode) {
      const name = (up.getAttribute('clip-path') || '').match(/#([^)'"]+)/);
      const rect = name && document.getElementById(name[1]).querySelector('rect');
      if (!rect) continue;
      const b = rect.getBBox(), at = up.getScreenCTM();
      clip = [at.a * b.x + at.e, at.d * b.y + at.f, at.a * (b.x + b.width) + at.e, at.d * (b.y + b.height) + at.f];
      break;
    }
    out.push({ clip, text: node.textContent, corners, fill: style.fill, opacity, size: parseFloat(style.fontSize) });
  }
  const { width, height } = plot._fullLayout;
  return { texts: out, width, height };
}"""


def open_page(browser: Any, width: int = 1000) -> Any:
    """A page that can draw figures."""
    page = browser.new_page(viewport={"width": max(width, 1600), "height": 1200})
    page.set_content(PAGE)
    page.add_script_tag(path=str(PLOTLY))
    return page


def draw(page: Any, fig: Figure) -> dict[str, Any]:
    """Draw it, and return its size and its texts: content, four corners, colour, opacity."""
    page.evaluate(
        "f => { const d = document.getElementById('plot'); Plotly.purge(d);"
        " return Plotly.newPlot(d, f.data, f.layout, {staticPlot: true, responsive: false}).then(() => null); }",
        json.loads(fig.to_json()),
    )
    result: dict[str, Any] = page.evaluate(TEXTS)
    return result


def without_texts(page: Any, found: dict[str, Any]) -> np.ndarray:
    """The colours of what was drawn, [rows, columns, 3], without its texts."""
    show = "v => document.querySelectorAll('.main-svg text').forEach(t => (t.style.visibility = v))"
    page.evaluate(show, "hidden")
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": found["width"], "height": found["height"]})
    page.evaluate(show, "")
    return (255 * np.asarray(imread(io.BytesIO(shot)))[:, :, :3]).astype(float)
