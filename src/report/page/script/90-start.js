// Filters, and the way in.
function chip(group, value, text, mark = '') {
  return `<label class="chip"><input type="checkbox" data-group="${group}" value="${escapeHtml(value)}" checked><span>${mark}${escapeHtml(text)}</span></label>`;
}

function drawFilters() {
  const box = name => document.querySelector(`[data-filter="${name}"] .chips`);
  box('methods').innerHTML = run.methods.map(m => chip('methods', m, m, glyph(m))).join('');
  box('models').innerHTML = run.models.map((m, i) => chip('models', i, m.name)).join('');
  box('dists').innerHTML = run.dists.map((d, i) => chip('dists', i, d)).join('');
  for (const input of document.querySelectorAll('[data-group]'))
    input.checked = state[input.dataset.group].has(
      input.dataset.group === 'methods' ? input.value : Number(input.value),
    );
  document.getElementById('profile').closest('label').hidden = !run.meta.scored;
  document.getElementById('profile').innerHTML = run.profiles
    .map(
      (p, k) =>
        `<option value="${k}" ${k === state.profile ? 'selected' : ''}>${profileTitle(k)}: α ${p.alpha}, γ ${p.gamma}</option>`,
    )
    .join('');
  document.getElementById('settings').innerHTML = run.methods
    .filter(m => run.variants.filter(v => v.method === m).length > 1)
    .map(
      m =>
        `<label class="pick">${escapeHtml(m)} setting <select data-setting="${escapeHtml(m)}">${run.variants.map((v, i) => (v.method === m ? `<option value="${i}" ${i === state.setting[m] ? 'selected' : ''}>${escapeHtml(v.name)}</option>` : '')).join('')}</select></label>`,
    )
    .join('');
  tellFilters();
}
function tellFilters() {
  const part = (set, all, word) => (set.size === all ? null : `${set.size} of ${all} ${word}s`);
  const parts = [
    part(state.methods, run.methods.length, 'method'),
    part(state.models, run.models.length, 'model'),
    part(state.dists, run.dists.length, 'distribution'),
  ].filter(Boolean);
  document.getElementById('filter-state').textContent = parts.length
    ? `· ${parts.join(', ')}`
    : '· everything is shown';
}

// A change of what is chosen: told, put into the address and drawn.
function chosenAnew() {
  listing.page = 0;
  tellFilters();
  writeAddress();
  redraw({ synthetic: false });
}
function setupAddress() {
  addEventListener('hashchange', () => {
    if (!namesChoices(location.hash)) return;
    const before = addressOf(),
      item = readAddress(location.hash);
    if (addressOf() !== before) {
      drawFilters();
      redraw({ synthetic: false });
    }
    if (item !== null && view.follow) view.follow(item);
  });
}

function setupFilters() {
  document.getElementById('filters').addEventListener('change', ({ target }) => {
    const { group, setting } = target.dataset;
    if (group) {
      const value = group === 'methods' ? target.value : Number(target.value);
      state[group][target.checked ? 'add' : 'delete'](value);
    } else if (setting) state.setting[setting] = Number(target.value);
    else if (target.id === 'profile') state.profile = state.spbProfile = Number(target.value);
    chosenAnew();
  });
  document.querySelector('.filter-groups').addEventListener('submit', event => event.preventDefault());
  document.getElementById('reset').addEventListener('click', () => {
    resetState();
    drawFilters();
    chosenAnew();
  });
  document.getElementById('main').addEventListener('click', async ({ target }) => {
    const { set, value } = target.dataset;
    if (!set) return;
    state[set] = /^\d+$/.test(value) ? Number(value) : value;
    writeAddress();
    const figure = view.figures.find(f => target.closest(`#${f.id}`));
    if (figure) await drawFigure(figure);
    else view.drawTables();
    document.querySelector(`[data-set="${set}"][data-value="${value}"]`)?.focus();
  });
}

function drawFacts() {
  const { meta } = run,
    date = new Date(meta.created);
  const facts = [
    `Suite ${meta.suite}`,
    plural(run.models.length, 'model'),
    plural(run.dists.length, 'distribution'),
    plural(run.targets.length, 'target'),
    plural(run.rows.length, 'estimate'),
    Number.isNaN(date.getTime())
      ? meta.created
      : date.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' }),
    `deeptail ${meta.version} on ${meta.device}`,
  ];
  document.getElementById('facts').innerHTML = facts.map(f => `<span>${escapeHtml(f)}</span>`).join('');
  document.title = `deeptail report: ${meta.suite}`;
  const notes = [];
  if (meta.items < meta.expected)
    notes.push(
      `The run is not finished: ${thousands(meta.items)} of ${plural(meta.expected, 'estimate')} are done. The same command continues it.`,
    );
  if (!meta.scored)
    notes.push('No truth is known for any of these targets: estimates, intervals and costs are shown, losses are not.');
  else if (meta.without_truth)
    notes.push(
      `The truth is not known for ${thousands(meta.without_truth)} of ${plural(meta.items, 'estimate')}: their intervals and costs are shown, losses are of the others.`,
    );
  if (meta.unscored)
    notes.push(
      `${plural(meta.unscored, 'estimate')} could not be scored, because the truth was counted never or always.`,
    );
  if (!meta.scored) document.querySelector('h1').textContent = 'What the estimators answer, and what it costs';
  const notice = document.getElementById('unfinished');
  notice.hidden = !notes.length;
  notice.textContent = notes.join(' ');
}

async function start() {
  const data = await decodeData();
  view = data.a ? comparisonView(data) : REPORT_VIEW;
  if (!data.a) run = prepare(data);
  vega.expressionFunction('powerOfTen', powerOfTen);
  vega.expressionFunction('chosenDist', chosenDist);
  vega.expressionFunction('answerName', answerName);
  const item = readAddress(namesChoices(location.hash) ? location.hash : '');
  setupTheme(() => {
    drawFilters();
    redraw();
  });
  if (innerWidth < 700) document.getElementById('filters').open = false;
  (view.drawFacts ?? drawFacts)();
  drawFilters();
  document.getElementById('main').innerHTML = view.html();
  setupFilters();
  setupAddress();
  setupDownloads();
  await document.fonts.load('12px "Inter Report"', 'aα');
  const drawing = redraw();
  view.setup?.();
  if (item !== null && view.follow) view.follow(item);
  let width = innerWidth,
    timer;
  addEventListener('resize', () => {
    if (innerWidth === width) return;
    width = innerWidth;
    document.body.dataset.drawn = 'no';
    clearTimeout(timer);
    timer = setTimeout(redraw, 150);
  });
  await drawing;
}
