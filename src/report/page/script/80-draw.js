// Draws what is in sight first and the rest when there is time; a newer change stops an older one.
let generation = 0;
// What the page is: { html(), figures, drawTables(), and where wanted drawFacts(), setup(), follow(item) }.
let view;

const EMBED = () => ({
  actions: { export: true, source: false, compiled: false, editor: false },
  config: chartConfig(),
  tooltip: { id: 'vg-tooltip-element', theme: 'deeptail', disableDefaultStyle: true, sanitize: escapeHtml },
});

async function drawChart(chart, spec, crowded) {
  chart.style.minHeight = `${chart.offsetHeight}px`;
  const result = await vegaEmbed(
    chart,
    { $schema: 'https://vega.github.io/schema/vega-lite/v6.json', ...spec },
    { ...EMBED(), renderer: crowded ? 'canvas' : 'svg' },
  );
  chart.style.minHeight = '';
  return result.view;
}

// Figures that what is chosen has nothing for, with the reason ('' where nobody misses them): folded at the end of the page.
const leftOut = new Map();
function tellLeftOut() {
  const box = document.getElementById('left-out');
  if (!box) return;
  const told = view.figures.filter(f => leftOut.get(f.id));
  box.hidden = !told.length;
  box.querySelector('summary').textContent =
    `${plural(told.length, 'figure')} left out: ${told.map(f => f.kicker).join(', ')}`;
  box.querySelector('ul').innerHTML = told
    .map(f => `<li><b>${escapeHtml(f.kicker)}</b>. ${escapeHtml(leftOut.get(f.id))}</li>`)
    .join('');
}

async function drawFigure(f) {
  const section = document.getElementById(f.id),
    figure = section.querySelector('figure'),
    chart = figure.querySelector('.chart');
  section.hidden = false;
  const reason = f.why?.() ?? null,
    left = reason !== null,
    table = left ? null : (f.html?.() ?? null),
    spec = left || table ? null : f.spec(figure.clientWidth || section.clientWidth);
  leftOut.delete(f.id);
  section.hidden = figure.hidden = !spec && !table;
  if (section.hidden) leftOut.set(f.id, reason ?? 'Left out: nothing is chosen that this figure could show.');
  tellLeftOut();
  if (section.hidden) return;
  section.querySelector('h2').textContent = f.title();
  section.querySelector('.figure-tools').innerHTML = f.tools?.() ?? '';
  if (table) {
    chart.innerHTML = table;
    return;
  }
  const drawing = await drawChart(chart, spec, f.id === 'truth' && shownRows().length > 6000);
  f.drawn?.(chart, drawing);
}
async function drawExperiment(experiment) {
  const figure = document.querySelector(`[data-figure="spb-${experiment.name}"]`);
  await drawChart(figure.querySelector('.chart'), experimentSpec(experiment, figure.clientWidth), false);
}

function drawTables() {
  document.getElementById('takeaways').innerHTML = takeaways();
  document.getElementById('scores').innerHTML = scoreboard();
  const section = document.getElementById('tables');
  section.hidden = !run.meta.scored;
  section.querySelector('h2').textContent =
    `SPB loss per distribution and model, ${run.profiles[state.spbProfile].name} (${profileParameters(state.spbProfile)}, ε = ${scientific(run.profiles[state.spbProfile].epsilon, 3)})`;
  section.querySelector('.figure-tools').innerHTML = segmented(
    'spbProfile',
    run.profiles.map((p, k) => [k, `${profileTitle(k)}, α ${p.alpha}`]),
  );
  document.getElementById('loss-tables').innerHTML = lossTables(state.spbProfile);
  listing.here = null;
  drawItems();
}
const REPORT_VIEW = {
  html: pageHtml,
  figures: FIGURES,
  drawTables,
  follow: goToItem,
  setup() {
    setupItems();
    // Alone where everything else is drawn.
    document
      .getElementById('spb-fold')
      .addEventListener('toggle', () => redraw({ figures: document.body.dataset.drawn !== 'yes' }));
  },
};

const pause = () => new Promise(done => setTimeout(done, 0));
const distance = element => {
  const box = element.getBoundingClientRect();
  return box.bottom < 0 ? -box.bottom : Math.max(0, box.top - innerHeight);
};
const experimentJobs = () =>
  document.getElementById('spb-fold')?.open
    ? run.experiments.map(e => ({
        at: document.querySelector(`[data-figure="spb-${e.name}"]`),
        draw: () => drawExperiment(e),
      }))
    : [];

async function redraw({ figures = true, synthetic = true } = {}) {
  const mine = ++generation;
  document.body.dataset.drawn = 'no';
  if (figures) view.drawTables();
  const jobs = figures ? view.figures.map(f => ({ at: document.getElementById(f.id), draw: () => drawFigure(f) })) : [];
  if (synthetic) jobs.push(...experimentJobs());
  while (jobs.length) {
    jobs.sort((a, b) => distance(b.at) - distance(a.at));
    const job = jobs.pop();
    await job.draw().catch(error => console.error(`${job.at.id || job.at.dataset.figure}: ${error.stack ?? error}`));
    await pause();
    if (mine !== generation) return;
  }
  document.body.dataset.drawn = 'yes';
}
