"use strict";
// The Gantt chart of two policies: its bars, the leases behind them, its axis of time, zooming.

const ROW_PIXELS = 14; // of the Gantt chart
const GANTT_PIXELS = 1400; // all rows together: they are thinner where there are many
const BAND_PIXELS = 15; // least height of a NUMA node: a line of text
const TICK_PIXELS = 70; // between two numbers on the axis of time, at least
const STEPS = [0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 864000]; // s
const IDLE = 0.02; // of the episode: shorter idle times are not folded
const NARROW = 0.01; // of the episode: what a folded one takes

const {heights, colours} = settings; // of the phases' bars in rows, number of those of workflows
const PHASES = Object.keys(heights);
let focus = 0; // where the buttons zoom in

// By node, whether one of both policies has used it: pictures of both have the same rows.
const usedNodes = (panels) => panels[0].data.nodes.map((_, node) => panels.some(({data}) => data.nodes[node].lanes > 0));

// Both panels below one another: bars, lines between bands and names, all in rows from the top.
function ganttData(panels) {
  const used = usedNodes(panels);
  const lanes = panels.reduce((sum, {data}) => sum + data.nodes.reduce((part, node) => part + node.lanes, 0), 0);
  const pixels = Math.min(ROW_PIXELS, GANTT_PIXELS / Math.max(1, lanes));
  const band = Math.ceil(BAND_PIXELS / pixels);
  const gap = Math.ceil(28 / pixels);
  const fold = folding(panels.map(({data}) => data), byId("fold").checked);
  const found = {bars: [], leases: [], outages: [], folds: [], edges: [], titles: [], ticks: [], names: {}, rows: 0, until: fold.until};
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
      const rent = data.leases.filter((lease) => lease.node === index).reduce((sum, lease) => sum + lease.rent, 0);
      found.names[middle.toFixed(1)] = rent ? `${node.name}   ${usd(rent)}` : node.name;
      found.rows += height;
      return row;
    });
    found.edges.push({row: found.rows});
    for (const spans of ["leases", "outages"]) {
      for (const span of data[spans]) found[spans].push(ofServer(span, data.nodes, firstRow, found.rows, fold));
    }
    const all = data.containers;
    for (let index = 0; index < all.wf_id.length; index += 1) {
      addBars(found.bars, data, index, firstRow, data.nodes[all.node[index]].name, fold);
    }
  }
  found.folds = fold.gaps.map((gap) => ({...gap, top: 0, bottom: found.rows}));
  return {...found, height: found.rows * pixels, fold};
}

// The time in which a server is paid, or out of service, behind all of its nodes.
function ofServer({node, nodes, begin, end, rent = 0, condition = "leased"}, all, firstRow, rows, fold) {
  return {
    begin: fold.at(begin), end: fold.at(end), top: firstRow[node], bottom: firstRow[node + nodes] ?? rows,
    server: all[node].name.split(" · ")[0], condition, from: `${begin.toFixed(0)} s`, to: `${end.toFixed(0)} s`, rent: usd(rent),
  };
}

const usd = (rent) => `${rent.toFixed(2)} USD`;

// A bar for each phase that took any time; all of them tell the numbers of the whole container.
function addBars(bars, {containers: all, workflows, functions}, index, firstRow, place, fold) {
  const seconds = Object.fromEntries(PHASES.map((phase) => [phase, all[phase][index]]));
  const submitted = all.submission_time[index];
  const [workflow, fn] = [all.wf_id[index], all.fn_id[index]];
  const name = functions[workflow][fn];
  const container = {
    workflow: workflows[workflow],
    function: name === undefined ? `${fn}` : `${fn} (${name})`,
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
      const fill = phase === "running" ? `workflow ${workflow % colours}` : phase;
      bars.push({...container, phase, fill, begin: fold.at(begin), end: fold.at(end), top: middle - half, bottom: middle + half});
    }
    begin = end;
  }
  if (all.killed[index]) {
    const mark = {begin: fold.at(begin) - settings.killed * fold.until, end: fold.at(begin), top: middle - 0.5, bottom: middle + 0.5};
    bars.push({...container, phase: "killed", fill: "killed", ...mark});
  }
}

// Where times are on the axis, and back. Folded, time in which neither policy has a container is narrow.
function folding(episodes, folded) {
  const end = Math.max(...episodes.map((data) => data.end));
  const [times, places, gaps] = [[0], [0], []];
  const to = (time, gap) => {
    const place = places.at(-1) + (gap ? NARROW * end : time - times.at(-1));
    times.push(time);
    places.push(place);
  };
  for (const [begin, until] of folded ? idleTimes(episodes, end) : []) {
    to(begin, false);
    to(until, true);
    gaps.push({begin: places.at(-2), end: places.at(-1), idle: `${Math.round(until - begin)} s`});
  }
  to(end, false);
  return {
    at: (time) => along(times, places, time), time: (place) => along(places, times, place), until: places.at(-1), gaps,
    hidden: (time) => gaps.some(({begin, end: until}) => begin < along(times, places, time) && along(times, places, time) < until),
  };
}

// [begin, end] of the long times in which nothing waits or runs, in order.
function idleTimes(episodes, end) {
  const busy = episodes.flatMap(({containers: all}) => all.submission_time.map((begin, index) =>
    [begin, PHASES.reduce((time, phase) => time + all[phase][index], begin)])).sort((one, other) => one[0] - other[0]);
  const found = [];
  let last = 0;
  for (const [begin, until] of busy) {
    if (begin - last > IDLE * end) found.push([last, begin]);
    last = Math.max(last, until);
  }
  return found;
}

// `value` between two of `from`, ascending, as far along between the same two of `to`.
function along(from, to, value) {
  let after = 1;
  while (after < from.length - 1 && from[after] < value) after += 1;
  const [low, high] = [from[after - 1], from[after]];
  const share = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 1;
  return to[after - 1] + share * (to[after] - to[after - 1]);
}

async function drawGantt() {
  const {bars, leases, outages, folds, edges, titles, height, fold, ...parameters} = ganttData(chosen());
  const datasets = {bars, leases, outages, folds, edges, titles};
  await draw("gantt", (spec) => ({...withParameters(spec, parameters), height, datasets}));
  focus = Math.min(...bars.map((bar) => bar.begin));
  const view = views.gantt;
  // Scales follow a signal, so the axis waits for them; but they would wait for what this returns.
  const follow = () => view.runAfter(() => { drawTimes(view, fold); });
  for (const signal of ["zoom_begin", "width"]) view.addSignalListener(signal, follow);
  view.addEventListener("click", (event) => { focus = view.scale("x").invert(event.offsetX - leftOf(view)); });
  return drawTimes(view, fold);
}

const leftOf = (view) => view.origin()[0] + view.padding().left;

// The axis: above the chart, where it stays in sight, at steps that people count in.
function drawTimes(view, fold) {
  const scale = view.scale("x");
  const [begin, end] = scale.domain().map(fold.time);
  const step = STEPS.find((one) => (end - begin) / one <= Math.max(2, view.width() / TICK_PIXELS)) ?? STEPS.at(-1);
  const times = [];
  for (let count = Math.ceil(begin / step); count * step <= end; count += 1) {
    if (!fold.hidden(count * step)) times.push(count * step);
  }
  const marks = times.map((time) => [scale(fold.at(time)), Number(time.toFixed(3)).toLocaleString("en")]);
  const gaps = fold.gaps.map((gap) => [scale((gap.begin + gap.end) / 2), "⋯"]);
  let last = -TICK_PIXELS;
  const shown = [...marks, ...gaps].filter(([x]) => x >= 0 && x <= view.width());
  byId("gantt-times").replaceChildren(...shown.sort(([one], [other]) => one - other).flatMap(([x, text]) => {
    if (x - last < TICK_PIXELS / 2) return [];
    last = x;
    const label = document.createElement("span");
    label.textContent = text;
    label.style.left = `${x + leftOf(view)}px`;
    return [label];
  }));
  const lines = times.map(fold.at);
  if (String(lines) === String(view.signal("times"))) return view; // else both would follow each other
  return view.signal("times", lines).runAsync();
}

// Makes the time shown `factor` times as long around where the reader clicked last; 0 shows everything.
function zoom(factor) {
  const view = views.gantt;
  if (!factor) return drawGantt();
  const [begin, end] = view.scale("x").domain();
  const centre = focus >= begin && focus <= end ? focus : (begin + end) / 2;
  view.signal("zoom_begin", [centre - factor * (centre - begin), centre + factor * (end - centre)]);
  view.signal("zoom_top", view.scale("y").domain());
  return view.runAsync();
}
