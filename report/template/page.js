"use strict";
// Draws an evaluation, and answers the page's controls.

const ROW_PIXELS = 14; // of the Gantt chart
const GANTT_PIXELS = 1400; // all rows together: they are thinner where there are many
const BAND_PIXELS = 15; // least height of a NUMA node: a line of text

const {heights, colours} = settings; // of the phases' bars in rows, number of those of workflows
const PHASES = Object.keys(heights);

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

// Both panels below one another: bars, lines between bands and names, all in rows from the top.
function ganttData(panels) {
  const used = panels[0].data.nodes.map((_, node) => panels.some(({data}) => data.nodes[node].lanes > 0));
  const lanes = panels.reduce((sum, {data}) => sum + data.nodes.reduce((part, node) => part + node.lanes, 0), 0);
  const pixels = Math.min(ROW_PIXELS, GANTT_PIXELS / Math.max(1, lanes));
  const band = Math.ceil(BAND_PIXELS / pixels);
  const gap = Math.ceil(28 / pixels);
  const found = {bars: [], edges: [], titles: [], ticks: [], names: {}, rows: 0, until: 0};
  for (const {policy, data} of panels) {
    found.titles.push({row: found.rows + gap / 2, text: policy});
    found.rows += gap;
    const firstRow = data.nodes.map((node, index) => {
      const row = found.rows;
      if (!used[index]) return row;
      const height = Math.max(band, node.lanes);
      const middle = row + height / 2;
      found.edges.push({row});
      found.ticks.push(middle);
      found.names[middle.toFixed(1)] = node.name;
      found.rows += height;
      return row;
    });
    found.edges.push({row: found.rows});
    found.until = Math.max(found.until, data.end);
    const all = data.containers;
    for (let index = 0; index < all.wf_id.length; index += 1) {
      addBars(found.bars, all, index, firstRow, data.nodes[all.node[index]].name);
    }
  }
  return {...found, height: found.rows * pixels};
}

// A bar for each phase that took any time; all of them tell the numbers of the whole container.
function addBars(bars, all, index, firstRow, place) {
  const seconds = Object.fromEntries(PHASES.map((phase) => [phase, all[phase][index]]));
  const submitted = all.submission_time[index];
  const container = {
    workflow: all.wf_id[index],
    function: all.fn_id[index],
    place,
    submitted: submitted.toFixed(2),
    cold_start: seconds["server cold start"].toFixed(2),
    transfer: seconds.transfer.toFixed(3),
    waiting: seconds.waiting.toFixed(2),
    running: seconds.running.toFixed(2),
    completed: PHASES.reduce((time, phase) => time + seconds[phase], submitted).toFixed(2),
    memory: `${all.memory_alloc[index]} / ${all.memory_req[index]}`,
    parallelism: all.parallelism[index],
    computation: all.computation[index].toLocaleString("en"),
  };
  const middle = firstRow[all.node[index]] + all.lane[index] + 0.5;
  let begin = submitted;
  for (const phase of PHASES) {
    const end = begin + seconds[phase];
    if (end > begin) {
      const half = heights[phase] / 2;
      const fill = phase === "running" ? `workflow ${all.wf_id[index] % colours}` : phase;
      bars.push({...container, phase, fill, begin, end, top: middle - half, bottom: middle + half});
    }
    begin = end;
  }
}

function drawGantt() {
  const {bars, edges, titles, height, ...parameters} = ganttData(chosen());
  return draw("gantt", (spec) => ({...withParameters(spec, parameters), height, datasets: {bars, edges, titles}}));
}

function drawQueue() {
  const queue = chosen().flatMap(({panel, policy, data}) =>
    [...data.queue.time, data.end].map((time, index) => ({panel, policy, time, waiting: data.queue.waiting[index] ?? 0})));
  return draw("queue", (spec) => ({...spec, datasets: {queue}}));
}

function drawUse() {
  const resource = byId("resource").value;
  return Promise.all(chosen().map(({panel, policy, data}) => {
    byId(`use-${panel}-title`).textContent = policy;
    const nodes = data.nodes.filter((node) => node.lanes > 0);
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

function drawEpisode() {
  if (!stored.length) return Promise.resolve();
  for (const {panel, policy} of chosen()) byId(`${panel}-key`).textContent = policy;
  return Promise.all([drawGantt(), drawQueue(), drawUse(), drawTenants()]);
}

// Makes the time shown `factor` times as long around its middle; 0 shows everything.
function zoom(factor) {
  const view = views.gantt;
  if (!factor) return drawGantt();
  const [begin, end] = view.scale("x").domain();
  const half = (factor * (end - begin)) / 2;
  const middle = (begin + end) / 2;
  view.signal("zoom_begin", [middle - half, middle + half]);
  view.signal("zoom_top", view.scale("y").domain());
  return view.runAsync();
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
}
start(drawAll);
