// Numbers for people. Times are in microseconds, sizes in KiB or bytes.

function seconds(us) {
  const s = us / 1e6;
  if (!(s > 0)) return '0 s';
  if (s < 0.001) return `${(s * 1e6).toFixed(0)} µs`;
  if (s < 0.0995) return `${(s * 1e3).toFixed(s < 0.00995 ? 1 : 0)} ms`;
  if (s < 9.995) return `${s.toFixed(2)} s`;
  if (s < 99.95) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, '0')} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')} min`;
}
function memory(kib) {
  if (kib < 1000) return `${kib.toFixed(0)} KiB`;
  if (kib < 1000 * 1024) return `${(kib / 1024).toFixed(kib < 10240 ? 1 : 0)} MiB`;
  return `${(kib / 1048576).toFixed(kib < 100 * 1048576 ? 1 : 0)} GiB`;
}
const percent = (part, whole) => (whole > 0 ? `${(100 * part / whole).toFixed(part > 0 && part / whole < 0.0995 ? 1 : 0)} %` : '–');
const number = (value) => value.toLocaleString('en-GB');
const many = (count, one, more) => `${number(count)} ${count === 1 ? one : more}`;

// A tick's text needs as many digits as the distance between ticks has.
function tickText(us, step) {
  const s = us / 1e6;
  if (step < 1e3) return `${(us / 1e3).toFixed(step < 10 ? 3 : 1)} ms`;
  if (step < 1e6) return s < 60 ? `${s.toFixed(step < 1e4 ? 3 : step < 1e5 ? 2 : 1)} s` : `${Math.floor(s / 60)}:${(s % 60).toFixed(step < 1e5 ? 2 : 1).padStart(step < 1e5 ? 5 : 4, '0')}`;
  if (s < 60 && step < 6e7) return `${s.toFixed(0)} s`;
  const two = (value) => String(Math.floor(value)).padStart(2, '0');
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two((s % 3600) / 60)}:${two(s % 60)}`;
}
function tickStep(span, room) {
  const want = span / Math.max(room / 96, 1);
  for (const unit of [1, 1e1, 1e2, 1e3, 1e4, 1e5]) for (const f of [1, 2, 5]) if (unit * f >= want) return unit * f;
  for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200]) if (s * 1e6 >= want) return s * 1e6;
  return Math.ceil(want / 86400e6) * 86400e6;
}

// Text goes into the page as text only: names come from whoever wrote the files.
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'onclick') element.addEventListener('click', value);
    else if (name === 'style') Object.assign(element.style, value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const definition = (pairs) => {
  const list = el('dl');
  for (const [name, value] of pairs) if (value !== null && value !== undefined && value !== '') list.append(el('dt', null, name), el('dd', null, value));
  return list;
};
