"use strict";
// Draws charts from their specifications, in light or dark.

const byId = (id) => document.getElementById(id);
const settings = JSON.parse(byId("settings").textContent);
const views = {};
const drawing = {}; // by chart: the last drawing asked for, so that drawings follow one another
const dark = () => document.documentElement.classList.contains("dark");
// Where a point's name can be: right and down of it, in pixels, and how it is aligned there.
const PLACES = [8, 18].flatMap((far) => [
  [far, -far, "left"], [far, far, "left"], [-far, -far, "right"], [-far, far, "right"],
  [far, 0, "left"], [-far, 0, "right"], [0, -far - 4, "center"], [0, far + 4, "center"],
]);
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
    axisX: {labelOverlap: "parity", labelSeparation: 6, labelFlush: false},
    axisXQuantitative: {tickCount: {expr: "ceil(width / 90)"}},
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
  back: getComputedStyle(document.documentElement).getPropertyValue("--card"),
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
    place.style.minHeight = `${place.offsetHeight}px`; // so that what is below does not jump
    const view = (await vegaEmbed(place, spec, options)).view;
    views[id] = view;
    place.style.minHeight = "";
    if (id.startsWith("time-against")) {
      namePoints(view);
      view.addSignalListener("width", () => view.runAfter(() => namePoints(view))); // once scales have followed
    }
  };
  drawing[id] = (drawing[id] ?? Promise.resolve()).then(next);
  return drawing[id];
}

// Whether a line goes through a box, by Liang and Barsky's clipping.
function crosses([x1, y1, x2, y2], [left, top, right, bottom]) {
  let [enters, leaves] = [0, 1];
  for (const [step, room] of [[x1 - x2, x1 - left], [x2 - x1, right - x1], [y1 - y2, y1 - top], [y2 - y1, bottom - y1]]) {
    if (step === 0 && room < 0) return false;
    if (step < 0) enters = Math.max(enters, room / step);
    if (step > 0) leaves = Math.min(leaves, room / step);
  }
  return enters <= leaves;
}

// Names points, the most important first, each at a place that covers no point, name or line and is not
// nearer to another point. Learned policies and those of the front are named elsewhere rather than not.
function namePoints(view) {
  const [x, y] = [view.scale("x"), view.scale("y")];
  const [width, height] = [view.width(), view.height()];
  const points = view.data("names");
  const taken = points.map((one) => [x(one.x) - 5, y(one.y) - 5, x(one.x) + 5, y(one.y) + 5]);
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const front = points.filter((one) => one.front).sort((one, other) => one.x - other.x);
  const lines = [
    ...points.map((one) => [x(one.x_low), y(one.y), x(one.x_high), y(one.y)]),
    ...points.map((one) => [x(one.x), y(one.y_low), x(one.x), y(one.y_high)]),
    ...front.slice(1).map((one, place) => [x(front[place].x), y(front[place].y), x(one.x), y(one.y)]),
  ];
  const away = (one, [left, top, right, bottom]) => Math.hypot(
    Math.max(left - x(one.x), 0, x(one.x) - right), Math.max(top - y(one.y), 0, y(one.y) - bottom));
  const free = ([left, top, right, bottom]) => left >= 0 && right <= width && top >= 0 && bottom <= height &&
    taken.every((one) => right <= one[0] || left >= one[2] || bottom <= one[1] || top >= one[3]);
  view.data("names", points.map((point) => {
    // Vega knows its own objects again, so this has to be another.
    const named = {...structuredClone(point), text: ""};
    const size = pen.measureText(named.policy).width;
    const places = PLACES.map(([dx, dy, align]) => {
      const left = x(named.x) + dx - {left: 0, right: size, center: size / 2}[align];
      return {dx, dy, align, box: [left, y(named.y) + dy - 7, left + size, y(named.y) + dy + 7]};
    }).filter(({box}) => free(box));
    const near = places.filter(({box}) => points.every((one) => away(one, box) >= away(named, box)));
    const place = near.find(({box}) => !lines.some((line) => crosses(line, box)))
      ?? (named.front || named.kind === "learned" ? near[0] ?? places[0] : undefined);
    if (!place) return named;
    taken.push(place.box);
    return {...named, text: named.policy, dx: place.dx, dy: place.dy, align: place.align};
  })).runAsync();
}

// Sorts the rows of a table by the column whose heading is clicked; a second time the other way round.
function sortBy(heading) {
  const ascending = heading.ariaSort !== "ascending";
  for (const one of heading.parentElement.children) one.ariaSort = null;
  heading.ariaSort = ascending ? "ascending" : "descending";
  const key = ({cells}) => cells[heading.cellIndex].dataset.value ?? cells[heading.cellIndex].textContent;
  const byName = (one, other) => key(one).localeCompare(key(other));
  const byNumber = (one, other) => Number(key(one)) - Number(key(other)) || 0;
  for (const body of heading.closest("table").tBodies) {
    const rows = [...body.rows].sort(heading.cellIndex ? byNumber : byName);
    body.append(...(ascending ? rows : rows.reverse()));
  }
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
  for (const heading of document.querySelectorAll(".sorts thead th")) {
    heading.addEventListener("click", () => sortBy(heading));
  }
  byId("theme").addEventListener("click", () => use(!dark()));
  preference.addEventListener("change", () => use(preference.matches));
  use(preference.matches).then(() => { document.body.dataset.drawn = "yes"; });
}
