// The data as typed arrays; what matches a filter; sums over what matches.

const STATES = ['ran', 'from the cache', 'failed'];
const RAN = 0, HIT = 1, FAILED = 2;
const OUTCOMES = ['from the cache as a whole', 'built', 'bypassed', 'nothing to cache', 'failed'];
const DIRECT = 0, BUILT = 1, FALLBACK = 2, PASSED = 3, BROKEN = 4;
const WAITS = ['nothing', 'a processor slot', 'memory', 'a jobserver token'];

function loadModel(data) {
  const t = data.tasks, c = data.calls;
  const model = {
    data,
    meta: data.meta,
    taskCount: t.start.length,
    callCount: c.start.length,
    start: Float64Array.from(t.start),
    end: Float64Array.from(t.end),
    lane: Int32Array.from(t.lane),
    tool: Uint16Array.from(t.tool),
    arch: Int32Array.from(t.arch),
    call: Uint32Array.from(t.call),
    state: Uint8Array.from(t.state),
    label: Uint32Array.from(t.label),
    cpu: Float64Array.from(t.cpu),
    peak: Float64Array.from(t.peak),
    saved: Float64Array.from(t.saved),
    callStart: Float64Array.from(c.start),
    callEnd: Float64Array.from(c.end),
  };
  const lower = (list) => list.map((text) => text.toLowerCase());
  // What a word of the filter is looked for in, each text once.
  model.words = {
    tools: lower(data.tools),
    archs: lower(data.archs),
    labels: lower(data.labels),
    files: lower(data.files),
    states: STATES.map((text, at) => (at === HIT ? 'from the cache hit cached' : text)),
  };
  model.textTool = data.tools.map((name) => ['host', 'cudafe++', 'cicc', 'nvcc'].includes(name));
  model.deviceTool = data.tools.map((name) => name === 'cicc' || name === 'ptxas');
  model.hits = indices(model.taskCount, (at) => model.lane[at] < 0);
  model.lanes = Array.from({ length: data.meta.lanes }, () => []);
  for (let at = 0; at < model.taskCount; at++) if (model.lane[at] >= 0) model.lanes[model.lane[at]].push(at);
  model.events = loadEvents(model);
  model.critical = new Uint8Array(model.taskCount);
  for (const piece of data.critical) if (piece[3] >= 0) model.critical[piece[3]] = 1;
  return model;
}

function indices(count, wanted) {
  const list = [];
  for (let at = 0; at < count; at++) if (wanted(at)) list.push(at);
  return list;
}

// Starts and ends in order of time; at one moment ends come first. Ends are ~task.
function loadEvents(model) {
  const list = [];
  for (let at = 0; at < model.taskCount; at++) if (model.lane[at] >= 0 && model.end[at] > model.start[at]) list.push(at, ~at);
  const time = (event) => (event < 0 ? model.end[~event] : model.start[event]);
  list.sort((a, b) => time(a) - time(b) || a - b);
  return Int32Array.from(list);
}

// What ran at once, and its memory, as a step function over the tasks that match.
function loadOf(model, match) {
  const at = [0], running = [0], kib = [0];
  let count = 0, sum = 0;
  for (const event of model.events) {
    const task = event < 0 ? ~event : event;
    if (match && !match[task]) continue;
    count += event < 0 ? -1 : 1;
    sum += event < 0 ? -model.peak[task] : model.peak[task];
    const time = event < 0 ? model.end[task] : model.start[task];
    if (at[at.length - 1] === time) { running[running.length - 1] = count; kib[kib.length - 1] = sum; }
    else { at.push(time); running.push(count); kib.push(sum); }
  }
  return { at: Float64Array.from(at), running: Float64Array.from(running), kib: Float64Array.from(kib) };
}

// Every word has to be found in the file, the tool, the architecture, the label or the state.
function applyFilter(model, query, tools) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const match = new Uint8Array(model.taskCount).fill(1);
  const callMatch = new Uint8Array(model.callCount).fill(1);
  const { words: texts, data } = model;
  let count = 0;
  for (const word of words) {
    const inText = (list) => list.map((text) => (text.includes(word) ? 1 : 0));
    const tool = inText(texts.tools), arch = inText(texts.archs), label = inText(texts.labels);
    const file = inText(texts.files), state = inText(texts.states);
    for (let at = 0; at < model.taskCount; at++) {
      if (!(file[data.calls.file[model.call[at]]] || tool[model.tool[at]] || state[model.state[at]] ||
        (model.arch[at] >= 0 && arch[model.arch[at]]) || label[model.label[at]])) match[at] = 0;
    }
    for (let at = 0; at < model.callCount; at++) {
      const whole = data.calls.outcome[at] === DIRECT && state[HIT];
      if (!file[data.calls.file[at]] && !whole) callMatch[at] = 0;
    }
  }
  const all = tools.size === 0;
  for (let at = 0; at < model.taskCount; at++) {
    if (match[at] && (all || tools.has(model.tool[at]))) count++;
    else match[at] = 0;
  }
  const active = words.length > 0 || !all;
  // A call counts when it matches as a whole, or when one of its tasks does.
  if (!all) callMatch.fill(0);
  for (let at = 0; at < model.taskCount; at++) if (match[at]) callMatch[model.call[at]] = 1;
  return { active, match, callMatch, count };
}

// Rows by number, made when they are first asked for.
function grouped(make) {
  const rows = [];
  return { of: (key) => rows[key] || (rows[key] = make(key)), list: () => rows.filter(Boolean) };
}

// All tables in one walk over the tasks that match.
function sums(model, filter) {
  const { data } = model, { calls } = data;
  const cost = (name) => ({ name, cpu: 0, ran: 0, hits: 0, saved: 0, peak: 0, longest: 0, calls: 0, elapsed: 0, cicc: 0, ptxas: 0 });
  const files = grouped((key) => cost(data.files[key]));
  const archs = new Map();
  const tools = grouped((key) => Object.assign(cost(data.tools[key]), { tool: key }));
  const text = new Float64Array(model.callCount), callCpu = new Float64Array(model.callCount);
  const seen = new Uint8Array(model.callCount);
  const folders = grouped((key) => ({ name: data.folders[key], direct: 0, calls: 0, hits: 0, tasks: 0, saved: 0, cpu: 0 }));
  const add = (row, cpu, hit, took, at) => {
    row.cpu += cpu; row.elapsed += took;
    if (model.peak[at] > row.peak) row.peak = model.peak[at];
    if (hit) { row.hits++; row.saved += model.saved[at]; } else row.ran++;
  };
  const nvcc = data.tools.indexOf('nvcc');
  for (let at = 0; at < model.taskCount; at++) {
    if (!filter.match[at]) continue;
    const call = model.call[at], cpu = model.cpu[at], hit = model.state[at] === HIT, tool = model.tool[at];
    const took = hit ? 0 : model.end[at] - model.start[at], file = files.of(calls.file[call]);
    add(file, cpu, hit, took, at);
    add(tools.of(tool), cpu, hit, took, at);
    if (model.deviceTool[tool] && model.arch[at] >= 0) {
      const number = data.numbers[model.arch[at]];
      let row = archs.get(number);
      if (!row) archs.set(number, row = cost(number));
      add(row, cpu, hit, took, at);
      row[data.tools[tool]] += cpu;
    }
    if (!seen[call]) { seen[call] = 1; file.calls++; file.longest = Math.max(file.longest, model.callEnd[call] - model.callStart[call]); }
    callCpu[call] += cpu;
    if (model.textTool[tool]) text[call] += cpu;
    const folder = folders.of(calls.folder[call]);
    folder.cpu += cpu;
    if (tool !== nvcc) { folder.tasks++; if (hit) { folder.hits++; folder.saved += model.saved[at]; } }
  }
  const headers = grouped((key) => ({ name: data.headers.path[key], bytes: data.headers.bytes[key], calls: 0, cpu: 0 }));
  const reasons = grouped((key) => ({ ...data.reasons[key], calls: 0, cpu: 0 }));
  const fallbacks = grouped((key) => ({ name: data.texts[key], calls: 0 }));
  for (let call = 0; call < model.callCount; call++) {
    if (!filter.callMatch[call]) continue;
    const outcome = calls.outcome[call], folder = folders.of(calls.folder[call]);
    if (outcome === DIRECT || outcome === BUILT || outcome === BROKEN) {
      folder.calls++;
      if (outcome === DIRECT) {
        folder.direct++; folder.saved += calls.saved[call];
        const file = files.of(calls.file[call]);
        file.calls++; file.saved += calls.saved[call];
        file.longest = Math.max(file.longest, model.callEnd[call] - model.callStart[call]);
      }
    }
    if (calls.reason[call] >= 0) { const row = reasons.of(calls.reason[call]); row.calls++; row.cpu += callCpu[call]; }
    if (outcome === FALLBACK) { const row = fallbacks.of(calls.detail[call]); row.calls++; }
    if (!text[call]) continue;
    const bytes = Math.max(calls.headerBytes[call], 1);
    for (const header of calls.headers[call]) {
      const row = headers.of(header);
      row.calls++; row.cpu += text[call] * Math.min(data.headers.bytes[header] / bytes, 1);
    }
  }
  return { files: files.list(), archs: [...archs.values()], tools: tools.list(), folders: folders.list(), headers: headers.list(), reasons: reasons.list(), fallbacks: fallbacks.list() };
}
