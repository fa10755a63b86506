// Puts the page together: key figures, filter, timeline, tables, details.

function main() {
  const model = loadModel(JSON.parse(document.getElementById('data').textContent));
  const { data, meta } = model;
  const by = (id) => document.getElementById(id);
  by('title').textContent = meta.title;
  const when = meta.startedMs > 0 ? new Date(meta.startedMs).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' }) : '';
  by('subtitle').textContent = [when, meta.host, meta.build, meta.root].filter(Boolean).join('  ·  ');
  by('footer').textContent = `Made by warpcc ${meta.version}. Everything is in this file; nothing was sent anywhere.${meta.clockJumps ? ` The clock of ${many(meta.clockJumps, 'call', 'calls')} cannot be right; their place is a guess.` : ''}`;
  figures(by('figures'), model);

  const chosenTools = new Set();
  const chips = by('chips');
  const order = data.tools.map((_, at) => at).sort((a, b) => data.toolOrder[a] - data.toolOrder[b]);
  for (const tool of order) {
    const chip = el('button', { type: 'button', class: 'chip', 'aria-pressed': 'false', onclick: () => {
      if (!chosenTools.delete(tool)) chosenTools.add(tool);
      chip.setAttribute('aria-pressed', String(chosenTools.has(tool)));
      update();
    } }, el('i', { class: 'swatch', style: { background: `var(${toolVariable(data.tools[tool])})` } }), data.tools[tool]);
    chips.append(chip);
  }
  const tip = by('tip'), detail = by('detail');
  const timeline = Timeline(by('timeline'), by('cross'), model, {
    hover: (found, x, y) => {
      const content = found && describe(model, found);
      tip.hidden = !content;
      if (!content) return;
      tip.replaceChildren(...content);
      const box = tip.getBoundingClientRect();
      const left = x + 16 + box.width > window.innerWidth ? x - 16 - box.width : x + 16;
      const top = Math.min(y + 14, window.innerHeight - box.height - 8);
      tip.style.transform = `translate(${Math.max(left, 4)}px, ${Math.max(top, 4)}px)`;
    },
    choose: (task) => {
      detail.hidden = task < 0;
      if (task >= 0) detail.replaceChildren(...describeWhole(model, task));
    },
  });
  by('zoom-in').addEventListener('click', () => timeline.zoom(0.6));
  by('zoom-out').addEventListener('click', () => timeline.zoom(1 / 0.6));
  by('zoom-fit').addEventListener('click', () => timeline.fit());
  const query = by('query');
  const pick = (text) => { query.value = query.value === text ? '' : text; update(); };
  const showCards = Cards(by('cards'), model, pick);

  let latest = null, tablesAsked = false;
  function tables() {
    tablesAsked = false;
    const began = performance.now();
    showCards(latest);
    performance.measure('tables', { start: began, end: performance.now() });
    document.documentElement.dataset.ready = 'true';
  }
  function update() {
    const began = performance.now();
    const filter = applyFilter(model, query.value, chosenTools);
    timeline.filter(filter);
    // Tables may come a moment after the keystroke, and once for several.
    latest = filter;
    if (!tablesAsked) { tablesAsked = true; requestAnimationFrame(() => setTimeout(tables)); }
    const calls = filter.callMatch.reduce((sum, one) => sum + one, 0);
    by('matched').textContent = filter.active
      ? `${number(filter.count)} of ${many(model.taskCount, 'task', 'tasks')}, ${number(calls)} of ${many(model.callCount, 'call', 'calls')}`
      : `${many(model.taskCount, 'task', 'tasks')} of ${many(model.callCount, 'call', 'calls')}`;
    performance.measure('filter', { start: began, end: performance.now() });
  }
  query.addEventListener('input', update);
  document.addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === '/' && !typing) { event.preventDefault(); query.focus(); query.select(); }
    if (event.key === 'Escape' && typing && query.value) { event.preventDefault(); query.value = ''; update(); }
  });
  update();
}

function figures(parent, model) {
  const { figures: f } = model.data, { meta } = model;
  const figure = (name, value, more, share, title) => {
    const box = el('div', { class: 'figure', title }, el('div', { class: 'name' }, name), el('div', { class: 'value' }, value), el('div', { class: 'more' }, more || '\u00a0'));
    if (share !== null && share !== undefined) box.append(el('div', { class: 'meter', 'aria-hidden': true }, el('i', { style: { width: `${Math.min(100, 100 * share).toFixed(1)}%` } })));
    parent.append(box);
  };
  if (f.avoidedShare !== null) {
    figure('Compiler time avoided', `${f.bypassed ? '≤ ' : ''}${Math.floor(100 * f.avoidedShare)}%`, f.bypassed ? `without ${many(f.bypassed, 'bypassed call', 'bypassed calls')}` : `${seconds(f.savedUs)} of ${seconds(f.savedUs + f.cpuUs)}`, f.avoidedShare, 'Of the CPU time that the build takes without a cache');
  }
  figure('Wall time', seconds(meta.wallUs), `${many(model.callCount, 'call', 'calls')}${f.failed ? `, ${number(f.failed)} failed` : ''}`);
  figure('CPU time', seconds(f.cpuUs), `${percent(f.systemUs, f.cpuUs)} in the system`);
  figure('Tasks at once', f.meanRunning.toFixed(1), meta.slots ? `of ${meta.slots}, on average` : 'on average', meta.slots ? f.meanRunning / meta.slots : null);
  figure('Calls from cache', percent(f.callHits, f.callLooked), `${number(f.callHits)} of ${number(f.callLooked)}`, f.callLooked ? f.callHits / f.callLooked : null, 'Answered as a whole, without starting a compiler');
  figure('Steps from cache', percent(f.taskHits, f.taskLooked), `${number(f.taskHits)} of ${number(f.taskLooked)}`, f.taskLooked ? f.taskHits / f.taskLooked : null, 'Of the calls that were not answered as a whole');
  figure('Time saved', seconds(f.savedUs), 'of CPU, when it ran', null, 'What came from the cache took this long when it last ran');
  figure('Peak memory', memory(f.peakKib), meta.memoryKib ? `of ${memory(meta.memoryKib)}` : 'no limit known', meta.memoryKib ? f.peakKib / meta.memoryKib : null, 'The sum of the peaks of tasks that ran at once');
  const waits = Object.entries(f.waits).filter(([, wait]) => wait.tasks > 0).sort((a, b) => b[1].us - a[1].us);
  const total = waits.reduce((sum, [, wait]) => sum + wait.us, 0);
  figure('Waited, in sum', seconds(total), waits.length ? waits.filter(([, wait]) => wait.us >= total * 0.005).map(([name, wait]) => `${percent(wait.us, total)} ${name === 'cpu' ? 'slots' : name}`).join(', ') + (f.evicted ? `, ${f.evicted} evicted` : '') : 'nothing had to wait', null, 'Tasks that could have run and had to wait, together');
}

function title(model, task) {
  const arch = model.arch[task] >= 0 ? ` ${model.data.archs[model.arch[task]]}` : '';
  return `${model.data.tools[model.tool[task]]}${arch}`;
}
const swatch = (model, task) => el('i', { class: 'swatch', style: { display: 'inline-block', marginRight: '7px', background: `var(${toolVariable(model.data.tools[model.tool[task]])})` } });

function describe(model, found) {
  const { data } = model;
  if (found.piece !== undefined) {
    const [kind, from, to, task, why, call] = data.critical[found.piece];
    const name = kind === 0 ? title(model, task) : ['', 'warpcc: plan, look-ups, outputs', 'no task ran that this waited for', 'outside of warpcc'][kind];
    return [kind === 0 ? swatch(model, task) : null, el('b', null, name), definition([['on the path', seconds(to - from)], ['from', seconds(from)], ['began when', WHY[why]], ['file', call >= 0 ? data.files[data.calls.file[call]] : null]])].filter(Boolean);
  }
  if (found.task !== undefined) return [swatch(model, found.task), el('b', null, title(model, found.task)), definition(facts(model, found.task))];
  if (found.call !== undefined) return [el('b', null, 'Whole call from the cache'), definition([['file', data.files[data.calls.file[found.call]]], ['at', seconds(model.callStart[found.call])], ['took', seconds(model.callEnd[found.call] - model.callStart[found.call])], ['saved', seconds(data.calls.saved[found.call])]])];
  if (found.running !== undefined) return [el('b', null, seconds(found.time)), definition([['tasks at once', `${found.running}${model.meta.slots ? ` of ${model.meta.slots}` : ''}`], ['memory', `${memory(found.kib)}${model.meta.memoryKib ? ` of ${memory(model.meta.memoryKib)}` : ''}`]])];
  return null;
}

function facts(model, task) {
  const { data } = model, t = data.tasks, hit = model.state[task] === HIT;
  const waited = model.start[task] - t.queued[task];
  return [
    ['file', data.files[data.calls.file[model.call[task]]]],
    ['step', data.labels[model.label[task]]],
    ['state', model.state[task] === RAN ? null : STATES[model.state[task]]],
    [hit ? 'took' : 'ran', `${seconds(model.end[task] - model.start[task])}, from ${seconds(model.start[task])}`],
    ['waited', waited > 1000 ? `${seconds(waited)}${t.wait[task] ? ` for ${WAITS[t.wait[task]]}` : ''}` : null],
    ['CPU', hit ? null : seconds(model.cpu[task])],
    ['peak memory', hit ? null : memory(model.peak[task])],
    ['saved', hit ? seconds(model.saved[task]) : null],
    ['critical path', model.critical[task] ? 'yes' : null],
  ];
}

function describeWhole(model, task) {
  const { data } = model, call = model.call[task], reason = data.calls.reason[call];
  const command = data.calls.command[call];
  return [swatch(model, task), el('b', null, title(model, task)), definition([
    ...facts(model, task),
    ['call', `${OUTCOMES[data.calls.outcome[call]]}, ${seconds(model.callEnd[call] - model.callStart[call])}`],
    ['why it missed', reason >= 0 ? reasonText(data.reasons[reason]) : null],
    ['not stored', data.tasks.notStored[task] >= 0 ? data.texts[data.tasks.notStored[task]] : null],
    ['directory', data.texts[data.calls.directory[call]]],
    ['command', el('code', null, command)],
  ])];
}

try { main(); } catch (error) {
  const trouble = document.getElementById('trouble');
  trouble.hidden = false;
  trouble.textContent = `This page could not be drawn: ${error.message}`;
  throw error;
}
