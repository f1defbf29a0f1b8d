"use strict";
// What all pages share: draws charts from their specifications, in light or dark.

const byId = (id) => document.getElementById(id);
const settings = JSON.parse(byId("settings").textContent);
const {specs} = settings; // of the charts, by id
const views = {};
const drawing = {}; // by chart: the last drawing asked for, so that drawings follow one another
const dark = () => document.documentElement.classList.contains("dark");
const preference = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const style = getComputedStyle(document.documentElement);
  const [text, soft, line] = ["--text", "--soft", "--line"].map((name) => style.getPropertyValue(name));
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: "transparent",
    font,
    view: {stroke: null},
    axis: {
      labelColor: text, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal",
    },
    axisX: {labelOverlap: "greedy", labelSeparation: 6},
    legend: {labelColor: text, titleColor: soft},
    text: {color: text, fill: text},
    rule: {color: text},
    tick: {color: text},
  };
}

function draw(id, change = (spec) => spec) {
  if (!byId(id) || !specs[id]) return Promise.resolve();
  const next = async () => {
    views[id]?.finalize();
    const spec = change(structuredClone(specs[id]));
    const options = {actions: false, renderer: "canvas", config: theme(), tooltip: {theme: dark() ? "dark" : "light"}};
    views[id] = (await vegaEmbed(byId(id), spec, options)).view;
  };
  drawing[id] = (drawing[id] ?? Promise.resolve()).then(next);
  return drawing[id];
}

function set(id, signal, value) {
  return views[id]?.signal(signal, value).runAsync();
}

function options(select, values, selected) {
  select.replaceChildren(...values.map((value) => new Option(value, value, false, value === selected)));
}

// The boxes of lines that are checked.
function chosenLines() {
  return [...document.querySelectorAll("#policies input:checked")].map((box) => box.value);
}

function showFormula() {
  const metric = byId("metric").value;
  for (const text of document.querySelectorAll(".formula")) text.hidden = text.dataset.metric !== metric;
  return metric;
}

// Draws everything as the system wants it, and again whenever that or the button changes it.
function start(drawAll) {
  const use = (isDark) => {
    document.documentElement.classList.toggle("dark", isDark);
    return drawAll();
  };
  byId("theme").addEventListener("click", () => use(!dark()));
  preference.addEventListener("change", () => use(preference.matches));
  use(preference.matches).then(() => { document.body.dataset.drawn = "yes"; });
}
