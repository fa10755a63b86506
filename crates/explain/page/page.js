// Filters the steps of an explanation by words, folds their details, and switches between light and dark.
'use strict';
(() => {
  const query = document.getElementById('query');
  const matched = document.getElementById('matched');
  const sections = [...document.querySelectorAll('section')];
  const texts = sections.map(section => section.textContent.toLowerCase());
  const entries = new Map([...document.querySelectorAll('nav li[data-step]')].map(item => ['step-' + item.dataset.step, item]));
  const total = sections.length + (sections.length === 1 ? ' step' : ' steps');

  // Every word has to be somewhere in a step.
  function filter() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    sections.forEach((section, at) => {
      const hit = words.every(word => texts[at].includes(word));
      section.hidden = !hit;
      const entry = entries.get(section.id);
      if (entry) entry.hidden = !hit;
      shown += hit ? 1 : 0;
    });
    matched.textContent = words.length === 0 ? total : shown + ' of ' + total;
    document.getElementById('nothing').hidden = shown > 0;
    document.getElementById('opening').hidden = words.length > 0;
  }

  query.addEventListener('input', filter);
  document.addEventListener('keydown', event => {
    if (event.key === '/' && document.activeElement !== query) {
      event.preventDefault();
      query.focus();
    } else if (event.key === 'Escape' && query.value !== '') {
      query.value = '';
      filter();
    }
  });

  const fold = document.getElementById('fold');
  fold.addEventListener('click', () => {
    const folds = [...document.querySelectorAll('section details')];
    const open = !folds.some(one => one.open);
    folds.forEach(one => { one.open = open; });
    fold.textContent = open ? 'fold all' : 'unfold all';
  });
  fold.textContent = 'unfold all';

  document.getElementById('scheme').addEventListener('click', () => {
    const root = document.documentElement;
    const dark = root.dataset.scheme ? root.dataset.scheme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.scheme = dark ? 'light' : 'dark';
  });

  filter();
  document.documentElement.dataset.ready = 'true';
})();
