// What several components use; it is put in front of each. Every text reaches the page through textContent.
function el(tag, cls, text) {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}
function luminance(css) { // relative, as WCAG defines it
  const c = rgb(css).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}
function inkOn(css) { // whichever has more contrast; from 0.179 on that is black, and both have 4.58 there
  return luminance(css) > 0.179 ? "#000000" : "#ffffff";
}
function rgb(css) {
  const hex = css.trim().match(/^#([0-9a-f]{6})/i);
  if (hex) return [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16));
  const short = css.trim().match(/^#([0-9a-f]{3})$/i);
  if (short) return [...short[1]].map((d) => parseInt(d + d, 16));
  return (css.match(/[\d.]+/g) || ["255", "255", "255"]).slice(0, 3).map(Number);
}
function themeIsDark(node) {
  return luminance(getComputedStyle(node).getPropertyValue("--st-background-color") || "#ffffff") < 0.5;
}
// components of one group show the same heads: what is pointed at or chosen in one is so in all
const LINK = "headviz-head";
function tellOthers(s, what) {
  if (s.data.group) window.dispatchEvent(new CustomEvent(LINK, { detail: { ...what, group: s.data.group, from: s } }));
}
function listen(s, hear) {
  s.linked = ({ detail }) => detail.from !== s && s.data && detail.group === s.data.group && hear(detail);
  window.addEventListener(LINK, s.linked);
}
function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 2000);
}
