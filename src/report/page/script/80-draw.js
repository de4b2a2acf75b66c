// Draws what is in sight first and the rest when there is time; a newer change stops an older one.
let generation = 0;

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

async function drawFigure(f) {
  const section = document.getElementById(f.id),
    figure = section.querySelector('figure'),
    why = section.querySelector('.why');
  const reason = f.why?.() ?? null,
    spec = reason ? null : f.spec(figure.clientWidth || section.clientWidth);
  section.querySelector('h2').textContent = reason ? f.kicker : f.title();
  section.querySelector('.figure-tools').innerHTML = reason ? '' : (f.tools?.() ?? '');
  why.hidden = figure.hidden = false;
  why.textContent = reason ?? (spec ? '' : 'Left out: nothing is chosen that this figure could show.');
  why.hidden = !why.textContent;
  figure.hidden = !spec;
  if (!spec) return;
  const chart = figure.querySelector('.chart');
  const view = await drawChart(chart, spec, f.id === 'truth' && shownRows().length > 6000);
  f.drawn?.(chart, view);
}
async function drawExperiment(experiment) {
  const figure = document.querySelector(`[data-figure="spb-${experiment.name}"]`);
  await drawChart(figure.querySelector('.chart'), experimentSpec(experiment, figure.clientWidth), false);
}

function drawTables() {
  document.getElementById('takeaways').innerHTML = takeaways();
  document.getElementById('scores').innerHTML = scoreboard();
  const section = document.getElementById('tables');
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

const pause = () => new Promise(done => setTimeout(done, 0));
const distance = element => {
  const box = element.getBoundingClientRect();
  return box.bottom < 0 ? -box.bottom : Math.max(0, box.top - innerHeight);
};

async function redraw({ synthetic = true } = {}) {
  const mine = ++generation;
  document.body.dataset.drawn = 'no';
  drawTables();
  const jobs = FIGURES.map(f => ({ at: document.getElementById(f.id), draw: () => drawFigure(f) }));
  if (synthetic)
    jobs.push(
      ...run.experiments.map(e => ({
        at: document.querySelector(`[data-figure="spb-${e.name}"]`),
        draw: () => drawExperiment(e),
      })),
    );
  while (jobs.length) {
    jobs.sort((a, b) => distance(b.at) - distance(a.at));
    const job = jobs.pop();
    await job.draw().catch(error => console.error(`${job.at.id || job.at.dataset.figure}: ${error.stack ?? error}`));
    await pause();
    if (mine !== generation) return;
  }
  document.body.dataset.drawn = 'yes';
}
