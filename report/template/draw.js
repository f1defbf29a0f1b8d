"use strict";
// Draws charts from their specifications, in light or dark.

const byId = (id) => document.getElementById(id);
const settings = JSON.parse(byId("settings").textContent);
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

// Charts are those of the chosen scenario, those of the sweep's axis and metric, or there once.
function specOf(id) {
  if (id === "sweep") return settings.sweeps[byId("axis").value].specs[byId("swept-metric").value];
  return settings.specs[id] ?? settings.scenarios[byId("scenario").value][id];
}

// What the reader has chosen, by the names that parameters have in specifications.
const parameters = () => ({
  metric: byId("metric").value,
  panel: byId("panel")?.value,
  shown: [...document.querySelectorAll("#policies input:checked")].map((box) => box.value),
});

function withParameters(spec, values) {
  for (const parameter of spec.params ?? []) {
    if (parameter.name in values) parameter.value = values[parameter.name];
  }
  return spec;
}

function draw(id, change = (spec) => spec) {
  const place = byId(id);
  if (!place) return Promise.resolve();
  const next = async () => {
    views[id]?.finalize();
    const found = specOf(id);
    place.parentElement.hidden = !found; // scenarios need not have the same charts
    if (!found) return;
    const spec = change(withParameters(structuredClone(found), parameters()));
    const options = {actions: false, renderer: "canvas", config: theme(), tooltip: {theme: dark() ? "dark" : "light"}};
    views[id] = (await vegaEmbed(place, spec, options)).view;
  };
  drawing[id] = (drawing[id] ?? Promise.resolve()).then(next);
  return drawing[id];
}

function options(select, values, selected) {
  select.replaceChildren(...values.map((value) => new Option(value, value, false, value === selected)));
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
