"use strict";
// Draws an evaluation, and answers the page's controls.

// -------------------------------------------------------------------------------- one episode

const stored = [...document.querySelectorAll("script.episode")];
const parsed = new Map();

function episodeData(episode, policy) {
  const element = stored.find((one) => one.dataset.episode === episode && one.dataset.policy === policy);
  if (!parsed.has(element)) parsed.set(element, JSON.parse(element.textContent));
  return parsed.get(element);
}

function chosen() {
  const episode = byId("episode").value;
  return ["upper", "lower"].map((panel) => {
    const policy = byId(panel).value;
    return {panel, policy, data: episodeData(episode, policy)};
  });
}

function drawQueue() {
  const queue = chosen().flatMap(({panel, policy, data}) =>
    [...data.queue.time, data.end].map((time, index) => ({panel, policy, time, waiting: data.queue.waiting[index] ?? 0})));
  return draw("queue", (spec) => ({...spec, datasets: {queue}}));
}

function drawUse() {
  const resource = byId("resource").value;
  const panels = chosen();
  const used = usedNodes(panels);
  return Promise.all(panels.map(({panel, policy, data}) => {
    byId(`use-${panel}-title`).textContent = policy;
    const nodes = data.nodes.filter((_, node) => used[node]);
    const use = nodes.flatMap((node) => node[resource].map((percent, bin) =>
      ({node: node.name, begin: data.edges[bin], end: data.edges[bin + 1], percent})));
    return draw(`use-${panel}`, (spec) => ({...spec, height: Math.max(60, 18 * nodes.length), datasets: {use}}));
  }));
}

// Both panels have the same axes, so that areas can be compared.
function drawTenants() {
  const panels = chosen().map(({panel, policy, data}) => ({panel, policy, ...tenantUse(data)}));
  const until = Math.max(...panels.map((one) => one.until));
  const most = Math.max(...panels.map((one) => one.most));
  return Promise.all(panels.map(({panel, policy, use}) => {
    const title = byId(`tenants-${panel}-title`);
    if (title) title.textContent = policy;
    return draw(`tenants-${panel}`, (spec) => ({...withParameters(spec, {until, most}), datasets: {use}}));
  }));
}

function tenantUse({tenants, edges, end}) {
  const use = tenants.flatMap(([tenant, percents], place) => percents.map((percent, bin) =>
    ({tenant, place, begin: edges[bin], end: edges[bin + 1], percent}))).filter(({percent}) => percent > 0);
  const totals = new Array(edges.length - 1).fill(0);
  for (const [, percents] of tenants) percents.forEach((percent, bin) => { totals[bin] += percent; });
  return {use, until: end, most: Math.max(...totals)};
}

// Both panels have the same axes, so that lines can be compared.
function drawShares() {
  const panels = chosen().filter(({panel, data}) => byId(`shares-${panel}`) && data.shares);
  const until = Math.max(...panels.map(({data}) => data.shares.times.at(-1)));
  const most = Math.max(...panels.flatMap(({data}) => data.shares.curves.flatMap(([, ...both]) => both.map((one) => one.at(-1)))));
  return Promise.all(panels.map(({panel, policy, data}) => {
    byId(`shares-${panel}-title`).textContent = policy;
    tellShares(byId(`shares-${panel}-rows`), policy, data.shares);
    return draw(`shares-${panel}`, (spec) => ({...withParameters(spec, {until, most}), datasets: {shares: shareLines(data.shares)}}));
  }));
}

const shareLines = ({times, curves}) => curves.flatMap(([tenant, received, entitled]) =>
  Object.entries({received, entitled}).flatMap(([what, line]) =>
    line.map((core_seconds, index) => ({tenant, what, time: times[index], core_seconds}))));

function tellShares(body, policy, {line, rows}) {
  const cell = (kind, text) => Object.assign(document.createElement(kind), {textContent: text});
  const title = document.createElement("th");
  title.append(Object.assign(cell("span", `${policy}: ${line}`), {className: "told"}));
  title.colSpan = rows[0]?.length ?? 1;
  const lines = [[title], ...rows.map(([label, tenant, ...cells]) => {
    const name = document.createElement("th");
    const key = Object.assign(cell("span", tenant), {className: "key"});
    key.style.setProperty("--key", settings.tenants[label]);
    name.append(key);
    return [name, ...cells.map((text) => cell("td", text))];
  })];
  body.replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells);
    return row;
  }));
}

function drawEpisode() {
  if (!stored.length) return Promise.resolve();
  for (const {panel, policy} of chosen()) byId(`${panel}-key`).textContent = policy;
  return Promise.all([drawGantt(), drawQueue(), drawUse(), drawTenants(), drawShares()]);
}

// -------------------------------------------------------------------------------- controls

function choosePolicies() {
  const policies = stored.filter((one) => one.dataset.episode === byId("episode").value).map((one) => one.dataset.policy);
  const keep = (id, otherwise) => (policies.includes(byId(id).value) ? byId(id).value : otherwise);
  const upper = policies.includes(settings.upper) ? settings.upper : policies[0];
  options(byId("upper"), policies, keep("upper", upper));
  options(byId("lower"), policies, keep("lower", policies.find((policy) => policy !== upper) ?? upper));
}

function drawScenario() {
  const chosen = byId("scenario").value;
  for (const element of document.querySelectorAll("[data-scenario]")) element.hidden = element.dataset.scenario !== chosen;
  return Promise.all([...document.querySelectorAll(".of-scenario")].map(({id}) => draw(id)));
}

function chooseMetric() {
  const metric = byId("metric").value;
  for (const text of document.querySelectorAll(".formula")) text.hidden = text.dataset.metric !== metric;
  return draw("ranking");
}

function choosePanels() {
  options(byId("panel"), settings.sweeps[byId("axis").value].panels);
  for (const id of ["axis", "panel"]) byId(id).parentElement.hidden = byId(id).options.length < 2;
}

const drawLines = () => Promise.all(["profiles", "flow-time", "deadlines", "sweep"].map((id) => draw(id)));

function drawAll() {
  const promises = [...document.querySelectorAll(".promise")].map(({id}) => id);
  const once = ["sweep", "tenant-flow-time", "learning", ...promises].map((id) => draw(id));
  return Promise.all([drawScenario(), ...once, drawEpisode()]);
}

byId("scenario").addEventListener("change", drawScenario);
byId("metric").addEventListener("change", chooseMetric);
byId("policies").addEventListener("change", drawLines);
if (byId("sweep")) {
  choosePanels();
  byId("axis").addEventListener("change", () => { choosePanels(); draw("sweep"); });
  for (const id of ["panel", "swept-metric"]) byId(id).addEventListener("change", () => draw("sweep"));
}
if (stored.length) {
  options(byId("episode"), [...new Set(stored.map((one) => one.dataset.episode))]);
  choosePolicies();
  byId("episode").addEventListener("change", () => { choosePolicies(); drawEpisode(); });
  for (const id of ["upper", "lower"]) byId(id).addEventListener("change", drawEpisode);
  byId("resource").addEventListener("change", drawUse);
  byId("zoom").addEventListener("click", (event) => {
    const factor = event.target.dataset.zoom;
    if (factor !== undefined) zoom(Number(factor));
  });
  byId("fold").addEventListener("change", drawGantt);
}
start(drawAll);
