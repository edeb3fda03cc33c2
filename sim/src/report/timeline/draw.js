"use strict";
// Draws a run's timeline. Owns: looks and clicks. All data is in the element `data`; times are simulated microseconds.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const GUTTER = 118, ROW = 13, SHORTEST = 2000, LISTED = 12;
const FIRED = new Set(["FiredOnTime", "FiredLate"]);

// --- words ---------------------------------------------------------------------------------------------------------
const seconds = (us, digits = 3) => `${(us / 1e6).toFixed(digits)} s`;
const clock = (us) => new Date((D.starts_at_us + us) / 1000).toISOString().replace("T", " ").replace("Z", " UTC");
const nameOf = (job) => D.intents[job] || job.slice(0, 12);
// Generation, epoch, sequence: what the forty digits are made of.
const short = (token) => {
  if (!/^[0-9a-f]{40}$/.test(token || "")) return token || "none";
  const part = (from, to) => BigInt("0x" + token.slice(from, to)).toString();
  return `${part(0, 8)}.${part(8, 24)}.${part(24, 40)}`;
};
const RESULTS = {
  Succeeded: ["ok", "succeeded"], Failed: ["failed", "failed"], TimedOut: ["failed", "timed out"],
  WorkerLost: ["lost", "worker lost"], HandedBack: ["other", "handed back, not started"], Cancelled: ["other", "cancelled"],
};
const resultOf = (lease) => RESULTS[lease.result] || ["open", lease.result || "no end was recorded"];

function el(name, attributes, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes || {})) if (value !== undefined) node.setAttribute(key, value);
  for (const child of children) node.append(child);
  return node;
}
function html(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const tip = (text) => el("title", {}, text);

// --- what is shown, and where --------------------------------------------------------------------------------------
const schedules = [...new Set(D.windows.map((window) => window.schedule))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
const end = Math.max(D.ends_at, 1);
// A day that everybody slept through says nothing: the first view ends soon after the last thing that happened before it.
const busyUntil = (() => {
  const times = [D.healed_at || 0, ...D.leases.map((l) => l.from), ...D.calls.map((c) => c.at), ...D.faults.map((f) => f.to)];
  const early = times.filter((at) => at < (D.healed_at || end) + 720e6);
  return Math.min(end, Math.max(...early, 1e6) * 1.03 + 1e6);
})();
let view = { from: 0, to: busyUntil };
let picked = null; // { job } or { window } or { violation } or { state } ...
let current = -1;
let filter = "", exact = null; // What is looked for, and the job whose name that is.

function rowsOf(leases) {
  const ends = [];
  for (const lease of leases) {
    let row = ends.findIndex((at) => at <= lease.from);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = lease.to;
    lease.row = row;
  }
  return ends.length;
}
function layout() {
  const lanes = [];
  let y = 0;
  const add = (lane) => { lane.y = y; y += lane.height; lanes.push(lane); };
  add({ id: "faults", title: "faults", kind: "faults", height: 34 });
  for (const id of D.lanes) {
    const leases = D.leases.filter((lease) => lease.lane === id);
    const rows = rowsOf(leases);
    const height = id === "client" || (id === "store" && !rows) ? 22 : id === "target" ? 40 : 18 + Math.max(rows, 1) * ROW + 4;
    const titles = { client: "clients", target: "target (effects)" };
    add({ id, title: titles[id] || id, kind: "node", leases, rows, height });
  }
  for (const id of schedules) add({ id, title: `schedule ${id}`, kind: "schedule", height: 24 });
  return { lanes, height: y };
}
const L = layout();
const laneOf = Object.fromEntries(L.lanes.map((lane) => [lane.kind === "schedule" ? `schedule:${lane.id}` : lane.id, lane]));

const width = () => $("chart").clientWidth - GUTTER - 10;
const x = (at) => GUTTER + ((at - view.from) / (view.to - view.from)) * width();
const atX = (px) => view.from + ((px - GUTTER) / width()) * (view.to - view.from);
const inView = (from, to) => to >= view.from && from <= view.to;
const right = () => GUTTER + width();
const clipped = (from, to, least) => {
  const left = Math.max(x(from), GUTTER), stop = Math.min(x(to), right());
  return { x: left, width: Math.max(stop - left, least) };
};

const jobOfPick = () => (picked && picked.job) || null;
const matches = (job, schedule) => {
  if (!filter) return true;
  if (exact) return job === exact;
  const words = [job, job && D.intents[job], schedule].filter(Boolean);
  return words.some((word) => word.toLowerCase().includes(filter));
};
const look = (base, job, schedule) => {
  const one = jobOfPick(), isPicked = job && job === one;
  const dim = matches(job, schedule) ? (one && !isPicked ? " beside" : "") : " faded";
  return base + dim + (isPicked ? " picked" : "");
};

// --- drawing -------------------------------------------------------------------------------------------------------
function draw() {
  drawOverview();
  drawAxis();
  const svg = $("lanes");
  svg.setAttribute("height", L.height);
  svg.style.height = `${L.height}px`;
  const parts = [];
  for (const lane of L.lanes) drawLane(lane, parts);
  drawArrows(parts);
  let drawn = -9;
  for (const [number, violation] of D.violations.entries()) {
    if (!inView(violation.at, violation.at) || (number !== current && x(violation.at) - drawn < 3)) continue;
    drawn = x(violation.at);
    const on = number === current ? " on" : "";
    parts.push(el("line", { class: `violation${on}`, x1: x(violation.at), x2: x(violation.at), y1: 0, y2: L.height }));
  }
  if (D.healed_at && inView(D.healed_at, D.healed_at)) {
    parts.push(el("line", { class: "healed", x1: x(D.healed_at), x2: x(D.healed_at), y1: 0, y2: L.height }));
  }
  for (const lane of L.lanes) {
    parts.push(el("rect", { class: "gutter", x: 0, y: lane.y, width: GUTTER - 1, height: lane.height - 1 }));
    parts.push(el("text", { class: "name", x: 8, y: lane.y + 15 }, lane.title));
    parts.push(el("line", { class: "rule", x1: 0, x2: right() + 10, y1: lane.y + lane.height - 0.5, y2: lane.y + lane.height - 0.5 }));
  }
  svg.replaceChildren(...parts);
}
function drawLane(lane, parts) {
  if (lane.kind === "faults") return drawFaults(lane, parts);
  if (lane.kind === "schedule") return drawWindows(lane, parts);
  const states = D.states.filter((state) => state.lane === lane.id && inView(state.from, state.to));
  for (const state of states) {
    // A wrong clock hurts nobody's process: it is a stripe on top, not a shade of the whole lane.
    const height = state.kind === "clock" ? 6 : lane.height - 1;
    const node = el("rect", { class: `state ${state.kind}`, y: lane.y, height, ...clipped(state.from, state.to, 1.5) },
      tip(`${lane.id}: ${state.label}, ${seconds(state.from)} to ${seconds(state.to)}`));
    node.onclick = () => pick({ state });
    parts.push(node);
    const box = clipped(state.from, state.to, 0);
    if (box.width > state.label.length * 6.2 && state.kind !== "clock") {
      parts.push(el("text", { class: `small${state.kind === "down" ? " on" : ""}`, x: box.x + 4, y: lane.y + 12 }, state.label));
    } else if (state.kind === "clock" && box.width > state.label.length * 6.2) {
      parts.push(el("text", { class: "small dim", x: box.x + 4, y: lane.y + 16 }, state.label));
    }
  }
  if (lane.id === "target") drawCalls(lane, parts);
  for (const lease of lane.leases || []) if (inView(lease.from, lease.to)) drawLease(lane, lease, parts);
  for (const mark of D.marks) if (mark.lane === lane.id && inView(mark.at, mark.at)) drawMark(lane, mark, parts);
}
function drawFaults(lane, parts) {
  for (const fault of D.faults) {
    if (!inView(fault.from, fault.to)) continue;
    const box = clipped(fault.from, fault.to, 3);
    const text = `${fault.kind} #${fault.number}`;
    const node = el("rect", { class: `fault${fault.left_out ? " out" : ""}`, y: lane.y + 3, height: 16, rx: 2, ...box },
      tip(`fault ${fault.number}: ${fault.kind}, ${seconds(fault.from)} to ${seconds(fault.to)}${fault.left_out ? " (left out)" : ""}`));
    node.onclick = () => pick({ fault });
    parts.push(node);
    if (box.width > text.length * 6) parts.push(el("text", { class: "small", x: box.x + 4, y: lane.y + 15 }, text));
  }
  let last = -1;
  for (const [at, what] of D.felt) {
    const px = Math.round(x(at));
    if (!inView(at, at) || px === last) continue;
    last = px;
    parts.push(el("line", { class: "felt", x1: px, x2: px, y1: lane.y + 23, y2: lane.y + 31 }, tip(`${what} at ${seconds(at)}`)));
  }
}
function drawWindows(lane, parts) {
  for (const window of D.windows) {
    if (window.schedule !== lane.id || !inView(window.at, Math.max(window.until, window.at))) continue;
    const fired = FIRED.has(window.fate), kind = window.wrong ? "wrong" : fired ? "fired" : window.fate ? "not" : "none";
    const box = clipped(window.at, Math.max(window.until, window.at), 4);
    const base = `window ${kind}`;
    const job = window.jobs.includes(jobOfPick()) ? jobOfPick() : window.jobs[0];
    const node = el("rect", { class: look(base, job, lane.id), y: lane.y + 4, height: 15, rx: 1.5, ...box },
      tip(`${lane.id} at ${seconds(window.at)}: ${window.fate || "no fate"}${window.wrong ? " — wrong" : ""}`));
    node.onclick = () => pick({ window });
    parts.push(node);
  }
}
function drawLease(lane, lease, parts) {
  const [kind, words] = resultOf(lease);
  const y = lane.y + 18 + lease.row * ROW, box = clipped(lease.from, lease.to, SHORTEST / 1000);
  const node = el("rect", { class: look(`lease ${kind}${lease.wrong ? " wrong" : ""}`, lease.job), y, height: ROW - 2, rx: 2, ...box },
    tip(`${nameOf(lease.job)} attempt ${lease.attempt}, token ${short(lease.token)}\n${seconds(lease.from)} to ${seconds(lease.to)}: ${words}`));
  node.onclick = () => pick({ job: lease.job });
  parts.push(node);
  const full = `${nameOf(lease.job)} · ${short(lease.token)}`, brief = short(lease.token);
  const text = box.width > full.length * 6 ? full : box.width > brief.length * 6 + 4 ? brief : "";
  if (text) parts.push(el("text", { class: look("on", lease.job).replace(" picked", ""), x: box.x + 3, y: y + 9 }, text));
}
function drawCalls(lane, parts) {
  for (const call of D.calls) {
    if (!inView(call.at, call.at)) continue;
    const node = el("circle", { class: look(`call${call.applied ? " applied" : ""}${call.wrong ? " wrong" : ""}`, call.job), cx: x(call.at), cy: lane.y + 17, r: call.wrong ? 6 : 4 },
      tip(`${nameOf(call.job)} attempt ${call.attempt}, token ${short(call.token)} at ${seconds(call.at)}\n${call.applied ? "the effect was applied" : "no effect"}`));
    node.onclick = () => pick({ job: call.job });
    parts.push(node);
    if (call.job === jobOfPick()) {
      const at = x(call.at), late = at > right() - 130;
      parts.push(el("text", { class: `small name${call.wrong ? " bad" : ""}`, x: at + (late ? -9 : 9), "text-anchor": late ? "end" : "start", y: lane.y + 35 }, `attempt ${call.attempt}: ${call.applied ? "effect applied" : "no effect"}`));
    }
  }
}
function drawMark(lane, mark, parts) {
  const said = lane.id !== "client";
  const bottom = lane.y + lane.height - 3;
  const node = el("line", { class: look(`mark${said ? " said" : ""}`, mark.job), x1: x(mark.at), x2: x(mark.at), y1: said ? lane.y + 2 : lane.y + 5, y2: said ? lane.y + 12 : bottom },
    tip(`${seconds(mark.at)} ${mark.text}`));
  node.onclick = () => pick(mark.job ? { job: mark.job } : { mark });
  parts.push(node);
}
// A lease reaches the target by a call under its token; an occurrence becomes leases by its job.
function drawArrows(parts) {
  const target = laneOf.target;
  const byToken = new Map(D.leases.map((lease) => [`${lease.job} ${lease.token}`, lease]));
  const seen = D.calls.filter((call) => inView(call.at, call.at));
  const job = jobOfPick();
  for (const call of seen) {
    const lease = byToken.get(`${call.job} ${call.token}`), lane = lease && laneOf[lease.lane];
    const on = call.job === job;
    if (!lane || !target || (!on && !call.wrong && seen.length > 80)) continue;
    const y1 = lane.y + 18 + lease.row * ROW + ROW / 2, y2 = target.y + 17;
    const kind = call.wrong ? " wrong" : on ? " on" : matches(call.job) ? "" : " faded";
    parts.push(el("path", { class: `arrow${kind}`, d: `M${x(call.at)} ${y1} V${y2 + (y1 < y2 ? -5 : 5)}`, "marker-end": "url(#head)" }));
  }
  if (!job) return;
  for (const window of D.windows.filter((window) => window.jobs.includes(job))) {
    const lane = laneOf[`schedule:${window.schedule}`], first = D.leases.find((lease) => lease.job === job);
    const to = first && laneOf[first.lane];
    if (!to || !inView(window.at, first.from)) continue;
    parts.push(el("path", { class: "arrow on", d: `M${Math.max(x(window.at), GUTTER)} ${lane.y + 4} L${x(first.from)} ${to.y + 18 + first.row * ROW + ROW - 2}` }));
  }
}
function drawAxis() {
  const parts = [], span = view.to - view.from;
  const steps = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 3e8, 6e8, 3.6e9, 1.08e10];
  const step = steps.find((step) => (step / span) * width() > 90) || 3.6e10;
  const digits = step < 1e4 ? 3 : step < 1e6 ? 2 : 0;
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    parts.push(el("line", { class: "rule", x1: x(at), x2: x(at), y1: 24, y2: 34 }));
    parts.push(el("text", { class: "small", x: x(at) + 3, y: 31 }, seconds(at, digits)));
  }
  parts.push(el("rect", { class: "gutter", x: 0, y: 0, width: GUTTER - 1, height: 34 }), el("text", { class: "small dim", x: 8, y: 31 }, "simulated time"));
  let flagged = -99;
  for (const [number, violation] of D.violations.entries()) {
    if (!inView(violation.at, violation.at) || x(violation.at) - flagged < 34) continue;
    const px = (flagged = x(violation.at));
    const flag = el("path", { class: "flag", d: `M${px} 34 V4 h${8 + 7 * String(number + 1).length} l-4 5 l4 5 H${px}` }, tip(`${number + 1}: ${violation.checker}: ${violation.what}`));
    flag.onclick = () => goTo(number);
    parts.push(flag, el("text", { class: "on", x: px + 3, y: 13 }, String(number + 1)));
  }
  if (D.healed_at && inView(D.healed_at, D.healed_at)) parts.push(el("text", { class: "small dim", x: x(D.healed_at) + 3, y: 12 }, "faults over"));
  $("axis").replaceChildren(...parts);
}
// The whole run in a strip: faults, violations, and what is in view.
function drawOverview() {
  const all = Math.max(busyUntil, view.to), scale = (at) => GUTTER + (at / all) * width();
  const parts = [el("text", { class: "small dim", x: 8, y: 19 }, "overview")];
  for (const state of D.states) parts.push(el("rect", { class: `state ${state.kind}`, x: scale(state.from), width: Math.max(scale(Math.min(state.to, all)) - scale(state.from), 0.5), y: 16, height: 10 }));
  for (const fault of D.faults) parts.push(el("rect", { class: "fault", x: scale(fault.from), width: Math.max(scale(fault.to) - scale(fault.from), 1), y: 4, height: 9 }));
  for (const violation of D.violations) parts.push(el("line", { class: "violation on", x1: scale(violation.at), x2: scale(violation.at), y1: 0, y2: 30 }));
  parts.push(el("rect", { class: "view", x: scale(view.from), width: Math.max(scale(view.to) - scale(view.from), 3), y: 1, height: 28, rx: 2 }));
  $("overview").replaceChildren(...parts);
  const move = (event) => {
    const at = ((event.offsetX - GUTTER) / width()) * all, half = (view.to - view.from) / 2;
    show(at - half, at + half);
  };
  $("overview").onmousedown = move;
  $("overview").onmousemove = (event) => { if (event.buttons) move(event); };
}

// --- moving --------------------------------------------------------------------------------------------------------
function show(from, to) {
  const span = Math.min(Math.max(to - from, SHORTEST), end);
  const start = Math.min(Math.max(from, 0), Math.max(end - span, 0));
  view = { from: start, to: start + span };
  draw();
}
function zoom(factor, at = (view.from + view.to) / 2) {
  show(at - (at - view.from) * factor, at + (view.to - at) * factor);
}
function scrollTo(lane) {
  if (!lane) return;
  const box = $("scroll"), top = box.scrollTop, bottom = top + box.clientHeight;
  if (lane.y < top || lane.y + lane.height > bottom) box.scrollTop = Math.max(lane.y - box.clientHeight / 3, 0);
}
function goTo(number) {
  const violation = D.violations[number];
  if (!violation) return;
  current = number;
  const story = violation.job ? storyOf(violation.job) : [];
  // Of a long story, what lies within a minute; of an occurrence, what its window saw.
  const reach = (entry) => (/^(client|server):/.test(entry.text) ? 5e6 : 60e6);
  const near = story.filter((entry) => Math.abs(entry.at - violation.at) < reach(entry)).map((entry) => entry.at);
  const its = windowOf(violation);
  if (its) near.push(its.at, its.until, ...around(its).map((state) => state.from).filter((at) => at > its.at - 30e6));
  const from = Math.min(violation.at, ...near), to = Math.max(violation.at, ...near);
  const room = Math.max((to - from) * 0.12, 1e6);
  picked = { violation, job: violation.job };
  show(from - room, to + room);
  const lease = D.leases.find((lease) => lease.job === violation.job && lease.token === violation.token);
  scrollTo(lease ? laneOf[lease.lane] : violation.schedule && laneOf[`schedule:${violation.schedule}`]);
  tell();
}
function pick(what) {
  picked = what;
  current = -1;
  draw();
  tell();
}

// The occurrence that a violation is about, and how machines fared in its window.
const windowOf = (violation) => D.windows.find((one) => one.schedule === violation.schedule && one.at === violation.nominal);
const around = (one) => D.states.filter((state) => state.lane !== "target" && state.from <= one.until && state.to >= one.at);
// Instants in words of checkers are microseconds since 1970: a person looks for them on the axis.
const readable = (text) => text.replace(/(?<![\w.])(\d{16})(?!\d)/g, (whole) => `${whole} [${seconds(Number(whole) - D.starts_at_us)}]`);

// --- stories -------------------------------------------------------------------------------------------------------
function storyOf(job) {
  const entries = [];
  const add = (at, text, kind) => entries.push({ at, text, kind });
  for (const window of D.windows.filter((window) => window.jobs.includes(job))) {
    add(window.at, `due: schedule ${window.schedule}, fate ${window.fate || "none"}`, window.wrong ? "bad" : "");
  }
  for (const mark of D.marks) if (mark.job === job) add(mark.at, mark.lane === "client" ? `client: ${mark.text.replaceAll(job, "this job")}` : `${mark.lane}: ${mark.text.replaceAll(job, "this job")}`);
  for (const lease of D.leases.filter((lease) => lease.job === job)) {
    add(lease.from, `attempt ${lease.attempt} granted to ${lease.lane}, token ${short(lease.token)}`, "");
    const over = lease.result || lease.to < end;
    if (over) add(lease.to, `attempt ${lease.attempt} is over: ${resultOf(lease)[1]}${lease.state ? `; the job is ${lease.state.toLowerCase()}` : ""}`, "");
    for (const state of D.states) {
      if (state.lane === lease.lane && state.from <= lease.to && state.to >= lease.from) add(state.from, `${state.lane}: ${state.label}, until ${seconds(state.to)}`, "fault");
    }
  }
  const wrong = new Set(D.calls.filter((call) => call.wrong));
  for (const call of D.calls.filter((call) => call.job === job)) {
    add(call.at, `call at the target, attempt ${call.attempt}, token ${short(call.token)}: ${call.applied ? "EFFECT APPLIED" : "no effect"}`, wrong.has(call) ? "bad" : call.applied ? "effect" : "");
  }
  const key = (entry) => `${entry.at} ${entry.text}`;
  const unique = [...new Map(entries.map((entry) => [key(entry), entry])).values()];
  return unique.map((entry, n) => ({ ...entry, n })).sort((a, b) => a.at - b.at || a.n - b.n);
}
function storyList(entries) {
  return html("ol", { class: "story" }, entries.map((entry) =>
    html("li", { class: entry.kind || undefined, onclick: () => show(entry.at - 1e6, entry.at + 1e6), title: clock(entry.at) },
      html("time", {}, seconds(entry.at)), html("span", {}, entry.text))));
}
const row = (name, field, value) => (value === null || value === undefined || value === "" ? [] : [html("dt", {}, name), html("dd", { class: "mono", "data-field": field }, value)]);

function tell() {
  const box = $("details"), parts = [];
  const violation = picked && picked.violation;
  if (violation) parts.push(...ofViolation(violation));
  else if (picked && picked.job) parts.push(html("h2", {}, `Job ${nameOf(picked.job)}`));
  if (picked && picked.job) parts.push(...ofJob(picked.job, !!violation));
  else if (picked && picked.window) parts.push(...ofWindow(picked.window));
  else if (picked && (picked.state || picked.fault)) parts.push(...ofStretch(picked.state || picked.fault));
  else if (picked && picked.mark) parts.push(html("h2", {}, picked.mark.lane), storyList([picked.mark]));
  else if (!violation) parts.push(...ofRun());
  if (picked) parts.push(html("p", {}, html("button", { type: "button", onclick: () => { picked = null; current = -1; draw(); tell(); } }, "Back to the run")));
  box.replaceChildren(...parts);
  box.scrollTop = 0;
  $("which").textContent = D.violations.length ? (current < 0 ? `${D.violations.length} in all` : `${current + 1} of ${D.violations.length}`) : "no violation";
}
function ofViolation(violation) {
  return [
    html("h2", {}, `Violation ${current + 1}: ${violation.checker}`),
    html("p", { class: "promise" }, `Promised: ${violation.promise}`),
    html("p", { class: "what" }, readable(violation.what)),
    html("dl", {}, row("job", "job", violation.job), row("asked for as", "intent", violation.job && D.intents[violation.job]),
      row("token", "token", violation.token), row("", "token-short", violation.token && `${short(violation.token)} (generation.epoch.sequence)`),
      row("schedule", "schedule", violation.schedule), row("due", "nominal", violation.nominal === null ? null : seconds(violation.nominal)),
      row("when", "at", `${seconds(violation.at)} (${clock(violation.at)})`)),
    ...(violation.job ? [] : ofOccurrence(windowOf(violation))),
  ];
}
// What was decided of other schedules, or said of other jobs, is not of this story.
const isOf = (mark, one) => (mark.text.startsWith("decided ") ? mark.text.startsWith(`decided ${one.schedule} `) : !mark.job || one.jobs.includes(mark.job));
function ofOccurrence(one) {
  if (!one) return [];
  const entries = [
    { at: one.at, text: `due; its fate: ${one.fate || "none was given"}; ${one.jobs.length} jobs`, kind: "bad" },
    { at: one.until, text: "up to here a start is on time" },
    ...around(one).map((state) => ({ at: state.from, text: `${state.lane}: ${state.label}, until ${seconds(state.to)}`, kind: "fault" })),
    ...D.marks.filter((mark) => mark.lane !== "client" && mark.at >= one.at - 10e6 && mark.at <= one.until + 10e6 && isOf(mark, one)).map((mark) => ({ at: mark.at, text: readable(`${mark.lane}: ${mark.text}`) })),
  ];
  return [html("h3", {}, "What happened around it"), storyList(entries.sort((a, b) => a.at - b.at))];
}
function ofJob(job, brief) {
  const facts = brief ? [] : [html("dl", {}, row("job", "job", job), row("asked for as", "intent", D.intents[job]))];
  const related = D.violations.map((violation, number) => ({ violation, number })).filter((one) => one.violation.job === job);
  const links = brief ? [] : related.map((one) => html("button", { type: "button", onclick: () => goTo(one.number) }, `Violation ${one.number + 1}: ${one.violation.checker}`));
  return [...facts, ...links, html("h3", {}, "What happened to this job"), storyList(storyOf(job))];
}
function ofWindow(window) {
  const number = D.violations.findIndex((violation) => violation.schedule === window.schedule && violation.nominal === window.at);
  return [
    html("h2", {}, `Schedule ${window.schedule}, due at ${seconds(window.at)}`),
    html("dl", {}, row("due", "nominal", clock(window.at)), row("on time until", "until", seconds(window.until)), row("fate", "fate", window.fate || "none was given"),
      window.jobs.flatMap((job) => row("job", "job", job))),
    number < 0 ? null : html("button", { type: "button", onclick: () => goTo(number) }, `Violation ${number + 1}`),
    ...window.jobs.flatMap((job) => [html("h3", {}, "What happened to its job"), storyList(storyOf(job))]),
  ].filter(Boolean);
}
function ofStretch(stretch) {
  const held = D.leases.filter((lease) => lease.from <= stretch.to && lease.to >= stretch.from && (!stretch.lane || lease.lane === stretch.lane));
  const title = stretch.label ? `${stretch.lane}: ${stretch.label}` : `Fault ${stretch.number}: ${stretch.kind}`;
  return [
    html("h2", {}, title),
    html("dl", {}, row("from", "from", `${seconds(stretch.from)} (${clock(stretch.from)})`), row("to", "to", seconds(stretch.to)), row("lasted", "lasted", seconds(stretch.to - stretch.from)),
      stretch.number ? row("leave it out", "without", `--without fault:${stretch.number}:${stretch.to - stretch.from}`) : []),
    html("h3", {}, `Leases in this time (${held.length})`),
    html("ul", { class: "plain" }, held.slice(0, 60).map((lease) => html("li", {}, html("button", { type: "button", onclick: () => pick({ job: lease.job }) }, `${nameOf(lease.job)} attempt ${lease.attempt}: ${resultOf(lease)[1]}`)))),
  ];
}
function ofRun() {
  const list = D.violations.slice(0, LISTED).map((violation, number) => html("li", {}, html("button", { type: "button", title: violation.what, onclick: () => goTo(number) }, `${number + 1} · ${violation.checker}: ${violation.what}`)));
  if (D.violations.length > LISTED) list.push(html("li", {}, `and ${D.violations.length - LISTED} more`));
  const rows = D.checkers.map((checker) => html("tr", { class: checker.violations ? "bad" : undefined, title: checker.promise },
    html("td", {}, checker.name), html("td", { class: "n" }, String(checker.evaluations)), html("td", { class: "n" }, String(checker.violations))));
  return [
    html("h2", {}, `Seed ${D.seed}`),
    html("h3", {}, "Checkers"),
    html("table", {}, html("tr", {}, html("th", {}, "checker"), html("th", { class: "n" }, "judged"), html("th", { class: "n" }, "wrong")), rows),
    ...(list.length ? [html("h3", {}, "Violations"), html("ul", { class: "plain" }, list)] : []),
    html("h3", {}, "The run"),
    html("dl", {}, row("repeat with", "command", D.command), row("commit", "commit", D.commit || "not kept"), row("hash", "hash", D.hash), row("began", "began", clock(0)),
      row("faults over", "healed", D.healed_at ? seconds(D.healed_at) : "never"), row("ended", "ended", seconds(D.ends_at)),
      row("jobs", "jobs", String(Object.keys(D.intents).length)), row("drawn", "options", D.options)),
  ];
}

// --- frame ---------------------------------------------------------------------------------------------------------
function legend() {
  const box = (name, words, kind = "rect") => {
    const shape = kind === "circle" ? el("circle", { class: name, cx: 11, cy: 6, r: 4.5 }) : el("rect", { class: name, x: 1, y: 1, width: 20, height: 10, rx: 2 });
    return html("span", {}, el("svg", { viewBox: "0 0 22 12" }, shape), words);
  };
  $("legend").replaceChildren(
    box("state down", "process dead"), box("state starting", "starting"), box("state paused", "frozen"), box("state cut", "cut off"), box("state clock", "clock wrong"), box("state away", "store away"), box("state full", "disk full"), box("fault", "fault (ticks: felt by single calls)"),
    box("lease ok", "lease: succeeded"), box("lease failed", "failed"), box("lease lost", "worker lost"), box("lease other", "cancelled or handed back"), box("lease open", "open"),
    box("call applied", "effect applied", "circle"), box("call", "call without effect", "circle"),
    box("window fired", "occurrence fired"), box("window not", "not fired, as its policy says"), box("window none", "no fate needed"), box("window wrong", "wrong"));
}
function begin() {
  const bad = D.violations[0];
  const verdict = bad ? html("span", { class: "bad" }, `VIOLATION of ${[...new Set(D.violations.map((one) => one.checker))].join(", ")}`) : html("span", { class: "good" }, "every checker was content");
  $("verdict").replaceChildren(`Seed ${D.seed}: `, verdict);
  $("what").textContent = bad ? bad.what : `${D.leases.length} leases, ${D.calls.length} calls, ${D.windows.length} occurrences, ${D.faults.length} faults in ${seconds(D.ends_at, 0)} of simulated time`;
  for (const id of ["first", "before", "after"]) $(id).disabled = !bad;
  $("first").onclick = () => goTo(0);
  $("before").onclick = () => goTo(Math.max(current - 1, 0));
  $("after").onclick = () => goTo(Math.min(current + 1, D.violations.length - 1));
  $("in").onclick = () => zoom(0.5);
  $("out").onclick = () => zoom(2);
  $("fit").onclick = () => show(0, busyUntil);
  $("names").replaceChildren(...[...new Set([...schedules, ...Object.values(D.intents)])].slice(0, 500).map((name) => html("option", { value: name })));
  $("filter").oninput = () => {
    filter = $("filter").value.trim().toLowerCase();
    exact = Object.keys(D.intents).find((job) => D.intents[job].toLowerCase() === filter || job === filter) || null;
    if (exact) pick({ job: exact });
    else draw();
  };
  drag();
  window.addEventListener("resize", draw);
  window.addEventListener("keydown", (event) => {
    if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
    const span = view.to - view.from;
    const keys = { n: () => $("after").click(), p: () => $("before").click(), "+": () => zoom(0.5), "-": () => zoom(2), 0: () => $("fit").click(), ArrowLeft: () => show(view.from - span / 5, view.to - span / 5), ArrowRight: () => show(view.from + span / 5, view.to + span / 5) };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  const defs = el("svg", { width: 0, height: 0, style: "position:absolute;width:0;height:0" }, el("defs", {}, el("marker", { id: "head", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, el("path", { d: "M0 0 L8 4 L0 8 z", fill: "context-stroke" }))));
  document.body.append(defs);
  legend();
  draw();
  tell();
  const asked = location.hash.match(/^#violation-(\d+)$/);
  if (asked) goTo(Number(asked[1]) - 1);
}
function drag() {
  const svg = $("lanes");
  let from = null, brush = null;
  svg.addEventListener("mousedown", (event) => {
    if (event.offsetX < GUTTER || event.button) return;
    from = { px: event.offsetX, view: { ...view }, zooms: event.shiftKey };
    if (!from.zooms) svg.classList.add("dragging");
    event.preventDefault();
  });
  window.addEventListener("mousemove", (event) => {
    if (!from) return;
    const px = event.clientX - svg.getBoundingClientRect().left;
    if (from.zooms) {
      brush?.remove();
      brush = el("rect", { class: "brush", x: Math.min(px, from.px), width: Math.abs(px - from.px), y: 0, height: L.height });
      svg.append(brush);
    } else if (Math.abs(px - from.px) > 3) {
      const by = ((from.px - px) / width()) * (from.view.to - from.view.from);
      show(from.view.from + by, from.view.to + by);
    }
  });
  window.addEventListener("mouseup", (event) => {
    if (from && from.zooms && brush) {
      const px = event.clientX - svg.getBoundingClientRect().left;
      show(atX(Math.min(px, from.px)), atX(Math.max(px, from.px)));
    }
    brush = null;
    from = null;
    svg.classList.remove("dragging");
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, atX(event.offsetX));
    else { const by = (event.deltaX / width()) * (view.to - view.from); show(view.from + by, view.to + by); }
  }, { passive: false });
}
begin();
