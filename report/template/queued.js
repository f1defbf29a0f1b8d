"use strict";
// Draws an evaluation under queued dispatch, and answers the page's controls.

const OF_LOAD = ["ranking", "parts", "completion-cdf", "deadlines"];
const OF_LINES = ["against-ratio", "completion-cdf", "deadlines"];

async function drawAll() {
  await Promise.all(Object.keys(specs).map((id) => draw(id)));
  await Promise.all([chooseLoad(), chooseMetric(), chooseLines()]);
}

function chooseLoad() {
  const chosen = byId("load").value;
  for (const rows of document.querySelectorAll("#numbers tbody")) rows.hidden = rows.dataset.load !== chosen;
  const {panel} = settings.loads.find(({load}) => load === chosen);
  return Promise.all([...OF_LOAD.map((id) => set(id, "load", chosen)), set("against-ratio", "panel", panel)]);
}

function chooseMetric() {
  const metric = showFormula();
  if (byId("against")) byId("against").textContent = byId("metric").selectedOptions[0].text;
  return Promise.all(["ranking", "against-ratio"].map((id) => set(id, "metric", metric)));
}

function chooseLines() {
  return Promise.all(OF_LINES.map((id) => set(id, "shown", chosenLines())));
}

byId("load").addEventListener("change", chooseLoad);
byId("metric").addEventListener("change", chooseMetric);
byId("policies").addEventListener("change", chooseLines);
start(drawAll);
