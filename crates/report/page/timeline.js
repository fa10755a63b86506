// The timeline: one canvas with the critical path, hits, slots, tasks at once and memory over
// one axis of time. Draws only what is seen, and what would fall on one pixel only once.

const GUTTER = 92, AXIS = 24, STRIP = 15, GAP = 9, BUSY = 40, MEMORY = 62, RIGHT = 10;

function Timeline(canvas, cross, model, listen) {
  const context = canvas.getContext('2d', { alpha: false });
  const total = Math.max(model.meta.wallUs, 1);
  const lanes = model.meta.lanes;
  const view = { from: 0, to: total };
  let width = 0, height = 0, ratio = 1, rows = {}, colors = {}, filter = null, chosen = -1, queued = false;
  const loadAll = loadOf(model, null);
  let loadMatch = loadAll;
  const toolNames = model.data.tools;
  const pieces = model.data.critical;

  function layout() {
    width = Math.max(canvas.parentElement.clientWidth, 240);
    const lane = Math.max(2, Math.min(20, Math.floor(Math.max(330, window.innerHeight * 0.42) / Math.max(lanes, 1))));
    let y = AXIS;
    const take = (name, size, gap) => { rows[name] = { y, size }; y += size + (size ? gap : 0); };
    rows = { lane };
    take('critical', pieces.length ? STRIP : 0, 5);
    take('hits', model.hits.length || model.data.directHits.length ? STRIP - 2 : 0, 5);
    take('lanes', lanes * lane, GAP);
    take('busy', lanes ? BUSY : 0, GAP);
    take('memory', lanes ? MEMORY : 0, 4);
    height = y;
    ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    draw();
  }
  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    colors = { tools: toolNames.map((name) => read(toolVariable(name))) };
    for (const name of ['paper', 'card', 'ink', 'faint', 'rule', 'soft', 'dim', 'area', 'area-match', 'line', 'critical', 'cached', 'failed', 'accent', 'on-bar']) colors[name] = read(`--${name}`);
    draw();
  }
  function draw() {
    if (!queued) { queued = true; requestAnimationFrame(paint); }
  }

  const scale = () => (width - GUTTER - RIGHT) / (view.to - view.from);
  const xOf = (time) => GUTTER + (time - view.from) * scale();
  const timeAt = (x) => view.from + (x - GUTTER) / scale();

  // The first place in a sorted list whose value is above a limit.
  function above(count, value, limit) {
    let low = 0, high = count;
    while (low < high) { const middle = (low + high) >> 1; if (value(middle) > limit) high = middle; else low = middle + 1; }
    return low;
  }

  function paint() {
    queued = false;
    const began = performance.now();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.card;
    context.fillRect(0, 0, width, height);
    axis();
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER - RIGHT, height);
    context.clip();
    critical(); hits(); slots(); area('busy'); area('memory');
    context.restore();
    labels();
    performance.measure('frame', { start: began, end: performance.now() });
  }

  function axis() {
    const step = tickStep(view.to - view.from, width - GUTTER);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      const x = Math.round(xOf(time)) + 0.5;
      context.fillStyle = colors.rule;
      context.fillRect(x - 0.5, AXIS - 5, 1, height - AXIS + 5);
      context.fillStyle = colors.faint;
      if (x < width - 24) context.fillText(tickText(time, step), Math.max(x, GUTTER + 8), 10);
    }
    // Where the visible part is in the whole.
    if (view.to - view.from < total * 0.9999) {
      const room = width - GUTTER - RIGHT;
      context.fillStyle = colors.rule;
      context.fillRect(GUTTER, AXIS - 5, room, 3);
      context.fillStyle = colors.accent;
      context.fillRect(GUTTER + room * view.from / total, AXIS - 5, Math.max(room * (view.to - view.from) / total, 3), 3);
    }
  }

  function critical() {
    const { y, size } = rows.critical;
    if (!size) return;
    for (let at = above(pieces.length, (i) => pieces[i][2], view.from); at < pieces.length && pieces[at][1] < view.to; at++) {
      const [kind, from, to, task] = pieces[at];
      const x = xOf(from), w = Math.max(xOf(to) - x - (to - from > 2 / scale() ? 0.5 : 0), 0.5);
      context.fillStyle = kind === 0 && task >= 0 ? colors.tools[model.tool[task]] : kind === 1 ? colors.line : colors.dim;
      context.fillRect(x, y, w, size - 3);
    }
    context.fillStyle = colors.critical;
    context.fillRect(xOf(0), y + size - 2, total * scale(), 2);
  }

  function hits() {
    const { y, size } = rows.hits;
    if (!size) return;
    let last = -1;
    const tick = (time, strong) => {
      const x = Math.round(xOf(time) * ratio) / ratio;
      if (x === last && strong) return;
      context.fillStyle = strong ? colors.cached : colors.dim;
      context.fillRect(x, y, 1, size);
      if (strong) last = x;
    };
    const direct = model.data.directHits;
    const each = (list, time, strong) => { for (let at = above(list.length, (i) => time(list[i]), view.from - 1 / scale()); at < list.length && time(list[at]) <= view.to; at++) if (strong(list[at]) !== null) tick(time(list[at]), strong(list[at])); };
    const byTask = (wanted) => (task) => (Boolean(!filter || filter.match[task]) === wanted ? wanted : null);
    const byCall = (wanted) => (call) => ((!filter || !filter.active || filter.callMatch[call]) ? wanted || null : wanted ? null : false);
    if (filter && filter.active) { each(model.hits, (at) => model.start[at], byTask(false)); each(direct, (at) => model.callStart[at], byCall(false)); last = -1; }
    each(model.hits, (at) => model.start[at], byTask(true)); last = -1;
    each(direct, (at) => model.callStart[at], (call) => (byCall(true)(call) ? true : null));
  }

  function slots() {
    const { y: top, size } = rows.lanes, lane = rows.lane, k = scale();
    if (!size) return;
    const h = lane > 4 ? lane - (lane > 8 ? 2 : 1) : lane;
    const buckets = Array.from({ length: colors.tools.length + 1 }, () => []);
    const dim = colors.tools.length, marks = [], failed = [], texts = [];
    for (let row = 0; row < lanes; row++) {
      const list = model.lanes[row], y = top + row * lane;
      // Whole pixels: bars with soft edges take several times as long to draw.
      let covered = -1, before = -1;
      for (let at = above(list.length, (i) => model.end[list[i]], view.from); at < list.length; at++) {
        const task = list[at], start = model.start[task];
        if (start >= view.to) break;
        const x = Math.max(Math.round(GUTTER + (start - view.from) * k), GUTTER - 2);
        const end = Math.max(Math.min(Math.round(GUTTER + (model.end[task] - view.from) * k), width), x + 1);
        const on = !filter || filter.match[task] === 1;
        const color = on ? model.tool[task] : dim;
        // Many on one pixel: the first is enough, but one that matches beats one that does not.
        if (end <= covered && !(on && before === dim)) continue;
        const bucket = buckets[color], w = end - x > 7 ? end - x - 1 : end - x;
        if (w <= 3 && before === color && covered === x) bucket[bucket.length - 1] += w;
        else bucket.push(x, y, w);
        covered = end;
        before = w <= 3 || color === dim ? color : -1;
        if (model.critical[task] && on) marks.push(x, y, w);
        if (model.state[task] === FAILED) failed.push(x, y, w);
        if (w > 64 && h >= 11) texts.push(task, x, y, w, on);
      }
    }
    buckets.forEach((list, color) => {
      context.fillStyle = color === dim ? colors.dim : colors.tools[color];
      for (let at = 0; at < list.length; at += 3) context.fillRect(list[at], list[at + 1], list[at + 2], h);
    });
    context.fillStyle = colors.critical;
    const edge = h > 6 ? 2 : 1;
    for (let at = 0; at < marks.length; at += 3) {
      const [x, y, w] = [marks[at], marks[at + 1], marks[at + 2]];
      context.fillRect(x, y, w, edge);
      context.fillRect(x, y + h - edge, w, edge);
      // The sides of narrow ones would hide what is between them.
      if (w >= 16) { context.fillRect(x, y, edge, h); context.fillRect(x + w - edge, y, edge, h); }
    }
    context.fillStyle = colors.failed;
    for (let at = 0; at < failed.length; at += 3) context.fillRect(failed[at], failed[at + 1], Math.max(failed[at + 2], 3), h);
    context.font = `${h >= 15 ? 11 : 10}px system-ui, sans-serif`;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (let at = 0; at < texts.length; at += 5) {
      const [task, x, y, w, on] = texts.slice(at, at + 5);
      const room = Math.floor((w - 10) / 5.6), text = taskText(task, room);
      context.fillStyle = on ? textOn(colors.tools[model.tool[task]]) : colors.faint;
      context.fillText(text, Math.max(x, GUTTER) + 5, y + h / 2 + 0.5);
    }
    if (chosen >= 0 && model.lane[chosen] >= 0) {
      const x = xOf(model.start[chosen]), w = Math.max((model.end[chosen] - model.start[chosen]) * k, 3);
      context.strokeStyle = colors.ink;
      context.lineWidth = 2;
      context.strokeRect(x - 1, top + model.lane[chosen] * lane - 1, w + 2, h + 2);
    }
  }
  function taskText(task, room) {
    const file = model.data.files[model.data.calls.file[model.call[task]]];
    const arch = model.arch[task] >= 0 ? ` ${model.data.numbers[model.arch[task]]}` : '';
    const whole = `${toolNames[model.tool[task]]}${arch} · ${file.slice(file.lastIndexOf('/') + 1)}`;
    return whole.length <= room ? whole : room < 5 ? '' : `${whole.slice(0, room - 1)}…`;
  }
  const inks = new Map();
  function textOn(color) {
    if (!inks.has(color)) {
      const [r, g, b] = [1, 3, 5].map((at) => (parseInt(color.slice(at, at + 2), 16) / 255) ** 2.2);
      // Whichever of black and white has the better contrast.
      inks.set(color, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? '#0b0f14' : '#ffffff');
    }
    return inks.get(color);
  }

  // A step function as an area: for each pixel its largest value.
  function area(name) {
    const { y, size } = rows[name];
    if (!size) return;
    const isMemory = name === 'memory';
    const budget = isMemory ? model.meta.memoryKib : model.meta.slots;
    const top = topOf(name);
    const paintLoad = (load, color) => {
      const values = isMemory ? load.kib : load.running, k = 1 / scale();
      let at = Math.max(above(load.at.length, (i) => load.at[i], view.from) - 1, 0);
      context.fillStyle = color;
      context.beginPath();
      context.moveTo(GUTTER, y + size);
      for (let x = GUTTER; x < width - RIGHT; x++) {
        const until = view.from + (x + 1 - GUTTER) * k;
        let most = values[at];
        while (at + 1 < load.at.length && load.at[at + 1] < until) most = Math.max(most, values[++at]);
        const h = y + size - size * most / top;
        context.lineTo(x, h);
        context.lineTo(x + 1, h);
      }
      context.lineTo(width - RIGHT, y + size);
      context.fill();
    };
    paintLoad(loadAll, filter && filter.active ? colors.area : colors['area-match']);
    if (filter && filter.active) paintLoad(loadMatch, colors['area-match']);
    context.fillStyle = colors.line;
    context.fillRect(GUTTER, y + size, width, 1);
    if (budget > 0) {
      const line = y + size - size * budget / top;
      context.strokeStyle = colors.critical;
      context.lineWidth = 1;
      context.setLineDash([4, 3]);
      context.beginPath(); context.moveTo(GUTTER, line); context.lineTo(width, line); context.stroke();
      context.setLineDash([]);
    }
  }
  const mostOf = (list) => list.reduce((most, value) => (value > most ? value : most), 0);
  const most = { memory: mostOf(loadAll.kib), busy: mostOf(loadAll.running) };
  function topOf(name) {
    const budget = name === 'memory' ? model.meta.memoryKib : model.meta.slots;
    return Math.max(most[name], budget, 1e-9) * 1.08;
  }

  function labels() {
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = colors.faint;
    const x = GUTTER - 8, label = (text, y) => context.fillText(text, x, y);
    if (rows.critical.size) label('critical path', rows.critical.y + STRIP / 2 - 1);
    if (rows.hits.size) label('from cache', rows.hits.y + rows.hits.size / 2);
    const every = Math.max(1, Math.ceil(15 / rows.lane));
    for (let lane = 0; lane < lanes; lane++) {
      if (lane % every === 0) label(lane === 0 ? 'slot 1' : String(lane + 1), rows.lanes.y + lane * rows.lane + rows.lane / 2 - 0.5);
    }
    for (const [name, text] of [['busy', 'tasks at once'], ['memory', 'memory']]) {
      const { y, size } = rows[name];
      if (!size) continue;
      label(text, y + size - 7);
      const budget = name === 'memory' ? model.meta.memoryKib : model.meta.slots;
      if (budget > 0) {
        context.fillStyle = colors.critical;
        label(name === 'memory' ? memory(budget) : String(budget), Math.max(y + size - size * budget / topOf(name), y + 5));
        context.fillStyle = colors.faint;
      }
    }
  }

  // What is at a point of the canvas.
  function find(x, y) {
    const time = timeAt(x), slack = 3 / scale(), within = (row) => row.size && y >= row.y - 2 && y < row.y + row.size + 2;
    if (x < GUTTER || x > width) return null;
    if (within(rows.critical)) {
      const at = above(pieces.length, (i) => pieces[i][2], time);
      return at < pieces.length && pieces[at][1] <= time ? { piece: at, time } : { time };
    }
    if (within(rows.hits)) {
      const near = (list, start) => {
        const at = above(list.length, (i) => start(list[i]), time);
        return [at - 1, at].filter((i) => i >= 0 && i < list.length).map((i) => [Math.abs(start(list[i]) - time), list[i]]).sort((a, b) => a[0] - b[0])[0];
      };
      const task = near(model.hits, (i) => model.start[i]), call = near(model.data.directHits, (i) => model.callStart[i]);
      if (task && task[0] <= slack && !(call && call[0] < task[0])) return { task: task[1], time };
      return call && call[0] <= slack ? { call: call[1], time } : { time };
    }
    if (within(rows.lanes) && y < rows.lanes.y + rows.lanes.size) {
      const list = model.lanes[Math.min(lanes - 1, Math.max(0, Math.floor((y - rows.lanes.y) / rows.lane)))];
      const at = above(list.length, (i) => model.end[list[i]], time);
      let best = -1, distance = slack;
      for (const i of [at - 1, at]) {
        if (i < 0 || i >= list.length) continue;
        const away = Math.max(model.start[list[i]] - time, time - model.end[list[i]], 0);
        if (away < distance || (away === 0 && best < 0)) { best = list[i]; distance = away; }
      }
      return best >= 0 ? { task: best, time } : { time };
    }
    for (const name of ['busy', 'memory']) if (within(rows[name])) {
      const at = Math.max(above(loadAll.at.length, (i) => loadAll.at[i], time) - 1, 0);
      return { running: loadAll.running[at], kib: loadAll.kib[at], time };
    }
    return { time };
  }

  function show(from, to) {
    const span = Math.min(Math.max(to - from, 50), total);
    view.from = Math.min(Math.max(from, 0), total - span);
    view.to = view.from + span;
    draw();
  }
  const zoom = (factor, at) => {
    const time = at === undefined ? (view.from + view.to) / 2 : at, span = (view.to - view.from) * factor;
    show(time - (time - view.from) * factor, time - (time - view.from) * factor + span);
  };
  const pan = (share) => { const by = (view.to - view.from) * share; show(view.from + by, view.to + by); };
  function choose(task) {
    chosen = task;
    if (task >= 0) {
      const span = view.to - view.from;
      if (model.start[task] < view.from || model.end[task] > view.to) show(model.start[task] - span / 3, model.start[task] + span * 2 / 3);
    }
    draw();
    listen.choose(task);
  }
  // The next task that matches, by start.
  function step(by) {
    for (let at = chosen + by; at >= 0 && at < model.taskCount; at += by) if (!filter || filter.match[at]) return choose(at);
  }

  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    drag = { x: event.offsetX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (drag) {
      const by = event.offsetX - drag.x;
      drag.moved = drag.moved || Math.abs(by) > 3;
      if (drag.moved) { canvas.classList.add('dragging'); listen.hover(null); show(drag.from - by / scale(), drag.to - by / scale()); }
      return;
    }
    const began = performance.now();
    const found = find(event.offsetX, event.offsetY);
    cross.hidden = !found;
    if (found) cross.style.left = `${event.offsetX}px`;
    listen.hover(found, event.clientX, event.clientY);
    performance.measure('hover', { start: began, end: performance.now() });
  });
  canvas.addEventListener('pointerup', (event) => {
    const moved = drag && drag.moved;
    drag = null;
    canvas.classList.remove('dragging');
    if (!moved) {
      const found = find(event.offsetX, event.offsetY);
      const piece = found && found.piece !== undefined ? pieces[found.piece][3] : -1;
      choose(found && found.task !== undefined ? found.task : piece);
    }
  });
  canvas.addEventListener('pointerleave', () => { cross.hidden = true; listen.hover(null); });
  canvas.addEventListener('dblclick', (event) => zoom(0.4, timeAt(event.offsetX)));
  canvas.addEventListener('wheel', (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.004), timeAt(event.offsetX)); }
    else if (sideways) { event.preventDefault(); pan(sideways / width); }
  }, { passive: false });
  canvas.addEventListener('keydown', (event) => {
    const act = { ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), 0: () => show(0, total), Home: () => show(0, view.to - view.from), End: () => show(total, total), n: () => step(1), p: () => step(-1), Escape: () => choose(-1) }[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
  });
  new ResizeObserver(layout).observe(canvas.parentElement);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', readColors);
  window.matchMedia('print').addEventListener('change', readColors);
  layout();
  readColors();
  return {
    zoom, fit: () => show(0, total),
    filter: (next) => { filter = next; loadMatch = next.active ? loadOf(model, next.match) : loadAll; draw(); },
  };
}

const TOOLS_WITH_COLOR = ['cudafe++', 'cicc', 'ptxas', 'fatbinary', 'nvlink', 'host'];
function toolVariable(name) {
  return TOOLS_WITH_COLOR.includes(name) ? `--tool-${name.replace(/\+/g, '')}` : '--tool-other';
}
