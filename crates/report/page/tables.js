// Tables that follow the filter: sorted by any column, ten rows until more are asked for.

function Table(options) {
  let sort = options.sort, up = false, shown = 10, rows = [];
  const head = el('tr'), body = el('tbody');
  const more = el('button', { type: 'button', class: 'more-rows', onclick: () => { shown = shown > 10 ? 10 : 500; fill(); } });
  const empty = el('p', { class: 'empty' }, options.empty || 'Nothing here.');
  const table = el('table', null, el('thead', null, head), body);
  const scroll = el('div', { class: 'scroll' }, table);
  options.columns.forEach((column, at) => {
    const sorts = column.sort || column.value;
    const cell = el('th', { scope: 'col', class: column.left ? 'left' : undefined, title: column.title });
    if (sorts) cell.append(el('button', { type: 'button', onclick: () => { up = sort === at ? !up : at === 0; sort = at; fill(); } }, column.name));
    else cell.append(column.name);
    head.append(cell);
  });
  function fill() {
    const key = options.columns[sort].sort || options.columns[sort].value;
    rows.sort((a, b) => { const x = key(a), y = key(b); const order = x < y ? -1 : x > y ? 1 : 0; return up ? order : -order; });
    head.childNodes.forEach((cell, at) => { if (at === sort) cell.setAttribute('aria-sort', up ? 'ascending' : 'descending'); else cell.removeAttribute('aria-sort'); });
    const most = options.columns.map((column) => (column.bar ? rows.reduce((most, row) => Math.max(most, column.value(row)), 0) : 0));
    body.replaceChildren(...rows.slice(0, shown).map((row) => el('tr', null, ...options.columns.map((column, at) => cell(column, row, most[at])))));
    scroll.hidden = rows.length === 0;
    empty.hidden = rows.length > 0;
    more.hidden = rows.length <= 10;
    more.textContent = shown > 10 ? 'Show ten' : `Show ${rows.length > 500 ? '500 of ' : 'all '}${number(rows.length)}`;
  }
  function cell(column, row, most) {
    const text = column.text ? column.text(row) : column.value(row);
    const shown = column.path ? pathOf(column.path(row), column.lead && column.lead(row)) : text;
    if (column.link) {
      return el('td', null, el('button', { type: 'button', class: 'link', title: column.hint ? column.hint(row) : text, onclick: () => options.pick(column.link(row)) }, shown));
    }
    if (column.bar) {
      const bar = el('i', { style: { width: `calc(${most > 0 ? (100 * column.value(row) / most).toFixed(1) : 0}% - 14px)` } });
      return el('td', { class: 'bar' }, bar, el('span', null, text));
    }
    if (column === options.columns[0]) return el('td', null, el('span', { class: 'name', title: column.hint ? column.hint(row) : text }, shown));
    return el('td', { class: `${column.left ? 'left ' : ''}${column.minor ? 'minor' : ''}` }, text);
  }
  return {
    element: [scroll, empty, more],
    show: (next) => { rows = next; fill(); },
  };
}

function pathOf(path, lead) {
  const cut = path.lastIndexOf('/') + 1;
  return el('span', { class: 'path' }, lead ? el('span', { class: 'lead' }, ...lead) : null,
    cut ? el('span', { class: 'folder' }, path.slice(0, cut)) : null, el('span', { class: 'file' }, path.slice(cut)));
}
const card = (id, title, note, ...content) => el('section', { class: 'card', 'aria-labelledby': `h-${id}`, id: `card-${id}` },
  el('h2', { id: `h-${id}` }, title), note ? el('p', { class: 'note' }, note) : null, ...content);

// Every card, and one function that shows new sums in all of them.
function Cards(parent, model, pick) {
  const { data } = model;
  const cpu = { name: 'CPU', value: (row) => row.cpu, text: (row) => seconds(row.cpu), bar: true, title: 'Processor time of what ran' };
  const ranHits = [
    { name: 'Ran', value: (row) => row.ran, text: (row) => number(row.ran), minor: true },
    { name: 'Hits', value: (row) => row.hits, text: (row) => number(row.hits), minor: true, title: 'Tasks that came from the cache' },
  ];
  const peak = { name: 'Peak', value: (row) => row.peak, text: (row) => memory(row.peak), minor: true, title: 'Memory of the largest task' };
  const saved = { name: 'Saved', value: (row) => row.saved, text: (row) => seconds(row.saved), title: 'What came from the cache took this long when it ran' };
  const tables = {
    files: Table({ pick, sort: 2, columns: [
      { name: 'File', value: (row) => row.name, path: (row) => row.name, link: (row) => row.name },
      { name: 'Longest', value: (row) => row.longest, text: (row) => seconds(row.longest), title: 'Its longest call, from start to end' }, cpu, ...ranHits, peak] }),
    headers: Table({ pick, sort: 3, empty: 'No headers are known of these calls.', columns: [
      { name: 'Header', value: (row) => row.name, path: (row) => row.name, hint: (row) => row.name },
      { name: 'Size', value: (row) => row.bytes, text: (row) => memory(row.bytes / 1024), minor: true },
      { name: 'Calls', value: (row) => row.calls, text: (row) => number(row.calls), minor: true },
      { ...cpu, name: 'CPU, estimated' }] }),
    archs: Table({ pick, sort: 3, empty: 'No device code was compiled.', columns: [
      { name: 'Architecture', value: (row) => row.name, text: (row) => `sm_${row.name}`, link: (row) => `_${row.name}` },
      { name: 'cicc', value: (row) => row.cicc, text: (row) => seconds(row.cicc), minor: true },
      { name: 'ptxas', value: (row) => row.ptxas, text: (row) => seconds(row.ptxas), minor: true }, cpu, ...ranHits, peak] }),
    tools: Table({ pick, sort: 2, columns: [
      { name: 'Tool', value: (row) => row.name, link: (row) => row.name, path: () => '', lead: (row) => [toolSwatch(row.name), row.name] },
      { name: 'Elapsed', value: (row) => row.elapsed, text: (row) => seconds(row.elapsed), minor: true }, cpu, ...ranHits, peak] }),
    reasons: Table({ pick, sort: 1, empty: 'Every call was answered from the cache.', columns: [
      { name: 'What is not what the cache remembers', value: (row) => `${row.kind} ${row.name}`, text: reasonText, hint: (row) => `${reasonText(row)}, for instance in ${row.example}` },
      { name: 'Calls', value: (row) => row.calls, text: (row) => number(row.calls) }, cpu] }),
    folders: Table({ pick, sort: 1, columns: [
      { name: 'Folder', value: (row) => row.name, link: (row) => (row.name === '.' ? '' : `${row.name}/`) },
      { name: 'Calls hit', value: (row) => row.direct / Math.max(row.calls, 1), text: (row) => (row.calls ? `${percent(row.direct, row.calls)} of ${number(row.calls)}` : '–') },
      { name: 'Steps hit', value: (row) => row.hits / Math.max(row.tasks, 1), text: (row) => (row.tasks ? `${percent(row.hits, row.tasks)} of ${number(row.tasks)}` : '–') },
      saved, cpu] }),
    fallbacks: Table({ pick, sort: 1, columns: [
      { name: 'Why', value: (row) => row.name },
      { name: 'Calls', value: (row) => row.calls, text: (row) => number(row.calls) }] }),
    critical: Table({ pick, sort: 2, empty: 'Nothing took time.', columns: [
      { name: 'Task', value: (row) => row.text, link: (row) => row.file, hint: (row) => row.text, path: (row) => row.file, lead: (row) => [toolSwatch(row.tool), row.lead] },
      { name: 'Began when', left: true, value: (row) => row.why, minor: true },
      { name: 'On the path', value: (row) => row.time, text: (row) => seconds(row.time), bar: true }] }),
  };
  const another = data.another, headline = el('p', { class: 'headline' });
  if (another) {
    headline.append('One more like them would cost about ', el('b', null, `${seconds(another.cpuUs)} of CPU`), ` over ${many(another.files, 'file', 'files')}: `,
      el('b', null, seconds(another.wallUs)), ' at this build’s average load.');
  }
  const path = criticalPath(model);
  const note = {
    critical: 'The chain that determined when the build ended. Before each task stands the one whose output it needed, or whose end gave it a free slot. To end earlier, do less of this, or do it earlier.',
    headers: 'A header’s share, by bytes, of the time that its calls spent in tools that read it. What it includes counts for itself.',
    archs: 'cicc and ptxas run once per architecture.',
    reasons: 'A call counts under the first thing that differs.',
    files: 'Processor time of all their tasks.',
  };
  parent.append(
    card('critical', 'Critical path', note.critical, limits(model), path.stack, path.legend, ...tables.critical.element),
    card('files', 'Most expensive files', note.files, ...tables.files.element),
    card('archs', 'Architectures', note.archs, another ? headline : null, ...tables.archs.element),
    card('headers', 'Most expensive headers', note.headers, ...tables.headers.element),
    card('reasons', 'Why calls missed the cache', note.reasons, ...tables.reasons.element),
    card('folders', 'Cache by folder', null, ...tables.folders.element),
    card('tools', 'Tools', null, ...tables.tools.element));
  if (data.deviceTraces) parent.append(...deviceCards(data.deviceTraces, pick));
  if (data.calls.outcome.includes(FALLBACK)) parent.append(card('fallbacks', 'Left to plain nvcc', 'What warpcc does not fully understand, nvcc does as if it were alone.', ...tables.fallbacks.element));
  return (filter) => {
    const found = sums(model, filter);
    for (const name of ['files', 'headers', 'archs', 'tools', 'reasons', 'folders', 'fallbacks']) tables[name].show(found[name]);
    tables.critical.show(path.rows.filter((row) => !filter.active || filter.match[row.task]));
  };
}

function reasonText(row) {
  if (row.kind === 'new') return 'never seen before';
  const change = row.old || row.new ? `: ${row.old || 'none'} → ${row.new || 'none'}` : ' changed';
  return `${row.kind} ${row.name}${change}`;
}
// What it would take to end earlier, in a sentence.
function limits(model) {
  const { figures: f } = model.data, { meta } = model;
  if (!meta.slots || !meta.wallUs) return null;
  const line = el('p', { class: 'headline' }, 'All slots were busy for ', el('b', null, percent(f.fullUs, meta.wallUs)), ' of the build');
  if (f.tailUs > meta.wallUs * 0.01) {
    line.append(', and no more in its last ', el('b', null, seconds(f.tailUs)));
    const last = model.data.critical.filter(([kind, , to]) => kind === 0 && to > meta.wallUs - f.tailUs).sort((a, b) => (b[2] - b[1]) - (a[2] - a[1]))[0];
    if (last) line.append(`, which hung on ${title(model, last[3])} of ${model.data.files[model.data.calls.file[model.call[last[3]]]]}`);
  }
  line.append(f.fullUs > meta.wallUs * 0.7 ? '. More slots or less work would make it faster.' : '. More slots alone would not make it much faster.');
  return line;
}
const toolSwatch = (name) => el('i', { class: 'swatch', style: { background: `var(${toolVariable(name)})` } });
const WHY = ['the build began', 'its input was ready', 'a slot was free', 'memory was free', 'a token was free', 'the build tool started it'];

function criticalPath(model) {
  const { data } = model;
  const groups = new Map();
  const stackKey = ([kind, , , task]) => (kind === 0 ? data.tools[model.tool[task]] : ['', 'warpcc', 'waiting', 'outside'][kind]);
  const rows = [];
  for (const piece of data.critical) {
    const [kind, from, to, task, why] = piece, key = stackKey(piece);
    groups.set(key, (groups.get(key) || 0) + to - from);
    if (kind === 0) {
      const file = data.files[data.calls.file[model.call[task]]], arch = model.arch[task];
      const tool = data.tools[model.tool[task]], lead = arch >= 0 ? `${tool} ${data.archs[arch]}` : tool;
      rows.push({ task, file, tool, lead, time: to - from, why: WHY[why], text: `${lead} · ${file}` });
    }
  }
  const stack = el('div', { class: 'stack', 'aria-hidden': true }), legend = el('div', { class: 'legend' });
  const total = Math.max(model.meta.wallUs, 1);
  const background = (key) => ({ warpcc: 'var(--line)', waiting: 'var(--area)', outside: 'var(--dim)' }[key] || `var(${toolVariable(key)})`);
  for (const [key, time] of [...groups].sort((a, b) => b[1] - a[1])) {
    stack.append(el('i', { style: { width: `${100 * time / total}%`, background: background(key) } }));
    if (time / total >= 0.0005) legend.append(el('span', null, el('i', { class: 'swatch', style: { background: background(key) } }), `${key} ${percent(time, total)}`));
  }
  stack.hidden = groups.size === 0;
  return { stack, legend, rows };
}

// What nvcc's own traces say. They know no task, so no filter applies to them.
function deviceCards(traces, pick) {
  const of = (id, title, note, rows) => {
    const table = Table({ pick, sort: 1, columns: [
      { name: 'Name', value: (row) => row[0], path: (row) => (id === 'headers' ? row[0] : ''), lead: (row) => (id === 'headers' ? null : [row[0]]), hint: (row) => row[0] },
      { name: 'Time', value: (row) => row[2], text: (row) => seconds(row[2]), bar: true },
      { name: 'Alone', value: (row) => row[3], text: (row) => seconds(row[3]), title: 'Without events of the same kind within' },
      { name: 'Times', value: (row) => row[1], text: (row) => number(row[1]), minor: true }] });
    table.show(rows);
    return card(`device-${id}`, title, note, ...table.element);
  };
  const from = `From ${many(traces.traces, 'trace', 'traces')} of nvcc’s.`;
  return [
    of('phases', 'Phases of the device compiler', `${from} Events within others are in both.`, traces.phases),
    of('headers', 'Headers, as nvcc measured them', `${from} With what they include.`, traces.headers),
    of('templates', 'Templates', from, traces.templates)];
}
