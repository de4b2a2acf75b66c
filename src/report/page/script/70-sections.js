// The page from top to bottom. title() says what to see, read how to read it, spec(width) draws it, why() tells why it is left out.
const segmented = (key, options) =>
  `<div class="segmented" role="group">${options.map(([value, text]) => `<button type="button" data-set="${key}" data-value="${value}" aria-pressed="${state[key] === value}">${text}</button>`).join('')}</div>`;

const whyNoTruth = () =>
  run.meta.scored ? null : 'Left out: no truth is known, so there is nothing to compare the estimates with.';

const FIGURES = [
  {
    id: 'truth',
    kicker: 'Estimate against truth',
    title: scatterTitle,
    spec: scatterSpec,
    why: whyNoTruth,
    drawn: reachPoints,
    keyboard: true,
    tools: () =>
      segmented('scatter', [
        ['method', 'One panel per method'],
        ['pair', 'One panel per model and distribution'],
      ]),
    read:
      'One point per target; a decade is as long on both axes. On the line the estimate is exact; in the grey band it is within a factor of two. Above is too high, below too low. Thin bars are 95% intervals. ' +
      'Arrows at the edge are estimates that lie farther out, crosses in the band at the bottom estimates of zero. Select a point to go to its row; with the figure focused, the arrow keys step through the points and Enter follows.',
  },
  {
    id: 'answers',
    kicker: 'Targets without a known truth',
    title: answersTitle,
    spec: answersSpec,
    why: () => (unknownRows().length ? null : ''),
    drawn: (_, view) =>
      view.addEventListener('click', (_, item) => {
        if (item?.datum?.id >= 0) goToItem(item.datum.id);
      }),
    read: 'One row per target, one mark per method; bars are 95% intervals. An open arrow stands at the upper bound of an estimate of zero. With no truth to compare with, methods can only be compared with each other. Select a mark to go to its row.',
  },
  {
    id: 'loss-dist',
    kicker: 'Loss by distribution',
    title: () => winnerTitle(distGroups(), 'distribution'),
    spec: lossByDistSpec,
    why: whyNoTruth,
    read: 'SPB loss under the four profiles, averaged over the chosen models; lower (left) is better, and each step of the axis is a factor of ten. Bars are one standard error over targets. The grey tick is what exact answers would get: the truth is a count, and counts are noisy.',
  },
  {
    id: 'loss-model',
    kicker: 'Loss by model size',
    title: () => winnerTitle(modelGroups(), 'model'),
    spec: width => lossByModelSpec(width),
    why: () =>
      whyNoTruth() ??
      (run.models.length === 1 ? 'Left out: the run has one model, so there is no size to compare.' : null),
    read: 'Lines are averages over the chosen distributions, with one standard error; small points are single distributions. The dashed line is the noise of the truth. Lower is better.',
  },
  {
    id: 'metrics',
    kicker: 'The ranking depends on the loss',
    title: metricsTitle,
    spec: rankSpec,
    why: whyNoTruth,
    read: 'Place of each method by six losses, the best on top, with the loss beneath. The first two treat over- and underestimates alike; to the right, underestimates and rare targets weigh more and more. Lines that cross are methods that change places. A single estimate of zero makes the squared error of logs and Itakura–Saito infinite (∞); SPB stays finite.',
  },
  {
    id: 'metrics-model',
    kicker: 'Standard metrics',
    title: () => 'Even-handed losses, then losses that punish underestimates',
    spec: width => lossByModelSpec(width, [0, 4, 1, 5, 6]),
    html: () => (modelGroups().length === 1 && pooled().some(e => e.scored) ? metricsTable() : null),
    why: whyNoTruth,
    read: 'Averages over the chosen distributions by SPB and the standard metrics. ∞ marks methods with at least one estimate of zero, which a logarithm cannot score. “Calibrated” first maps each estimate by p → a pᶜ + b, fitted to the other targets: it uses the truth, needs five targets, and forgives a method its bias.',
  },
  {
    id: 'cost',
    kicker: 'Error against cost',
    title: costTitle,
    spec: costSpec,
    why: whyNoTruth,
    tools: () =>
      segmented('costUnit', [
        ['forwards', 'Forward passes'],
        ['seconds', 'Seconds'],
      ]),
    read: 'One point per setting, lines join the settings of one method. The best place is low on the left and high on the right. Cost is the geometric mean over targets, counted in whole forward passes’ worth of work, so that methods with partial or backward passes compare fairly. The dashed line is the noise of the truth.',
  },
  {
    id: 'coverage',
    kicker: 'Interval coverage',
    title: coverageTitle,
    spec: coverageSpec,
    why: whyNoTruth,
    tools: coverageKey,
    read: 'A 95% interval should hold the truth for 95% of targets. Where it lies above the interval, the estimate is too low and too sure of it: the dangerous mistake. The truth is a count, so intervals are widened by its noise before they are judged. The second panel shows how wide the intervals are: narrow ones are only worth something if they hold the truth.',
  },
  {
    id: 'ablation',
    kicker: 'Settings of one method',
    title: ablationTitle,
    spec: ablationSpec,
    why: whyNoAblation,
    read: 'Average SPB loss of each setting over the chosen pairs, with 1.28 standard errors; shorter is better. The scale is logarithmic and begins at a power of ten, so compare ends, not lengths.',
  },
  {
    id: 'whitening',
    kicker: 'Whitening diagnostic',
    title: whiteningTitle,
    spec: whiteningSpec,
    why: whyNoWhitening,
    read: 'Variance of each direction of the final residual on held-out inputs, sorted, before and after the whitening that ga-amls and qld use. Lines are medians over distributions, bands quartiles. Flat is what a step of one size needs.',
  },
];

const EXPERIMENT_TITLES = {
  'scale-invariance': 'Without a shift the loss depends on p/q alone',
  distortion: 'The shift changes the loss by less than the tolerance η',
  'distortion-by-eta': 'Distortion stays below η for every η',
  asymmetry: 'α above 1.5 makes underestimates cost more',
  'standard-losses': 'α spans the asymmetry of the standard losses',
  'scale-dependence': 'Only squared error depends on the scale of q',
  'loss-properties': 'A proper loss asks for the mean of what the truth may be',
  'use-cases': 'What the four profiles make of the same error',
};

const HALF_READ =
  'half-widths are of intervals with a lower end; “of 60%” is the share of estimates behind such a number';
const SCORES_READ = `Losses are averages over the chosen models and distributions, best first, with one standard error over targets. Typical error is the root mean square of log₁₀(estimate/truth) as a factor, of the estimates that are not zero, and ${HALF_READ}.`;
const UNKNOWN_READ = `Without a truth there are no losses. Costs are geometric means over targets; ${HALF_READ}.`;

function figureHtml(f) {
  return (
    `<section id="${f.id}" aria-labelledby="${f.id}-title"><p class="kicker">${f.kicker}</p><h2 id="${f.id}-title"></h2>` +
    `<div class="figure-tools"></div><figure data-figure="${f.id}"><div class="chart" ${f.keyboard ? 'tabindex="0" role="application"' : 'role="img"'} aria-labelledby="${f.id}-title" aria-describedby="${f.id}-read"></div>` +
    `${f.keyboard ? '<p class="readout" role="status" aria-live="polite"></p>' : ''}<figcaption id="${f.id}-read">${f.read}</figcaption></figure></section>`
  );
}
function pageHtml() {
  const head =
    '<section id="scoreboard" aria-labelledby="scoreboard-title" style="padding-top:1.8rem"><h2 id="scoreboard-title" class="hidden">In short</h2><div class="takeaways" id="takeaways"></div><div id="scores"></div>' +
    `<figcaption>${run.meta.scored ? SCORES_READ : UNKNOWN_READ}</figcaption></section>`;
  const tables =
    `<section id="tables" aria-labelledby="tables-title"><p class="kicker">Tables</p><h2 id="tables-title"></h2><div class="figure-tools"></div><div id="loss-tables"></div>` +
    '<figcaption>SPB loss, lower is better; the best of each row in bold. “noise” is the loss of exact answers, given that the truth is a count. – : not run on this distribution.</figcaption></section>';
  const spb =
    `<section id="spb" aria-labelledby="spb-title"><details id="spb-fold"><summary><span class="kicker">The loss itself</span><h2 id="spb-title">SPB loss is fair across scales, finite at zero, and as cautious as you choose</h2></summary><p class="lead">Made-up errors instead of estimators: p = m q is an overestimate by the factor m, p = q/m an underestimate.</p>` +
    `<div class="grid-2">${run.experiments.map(e => `<figure data-figure="spb-${e.name}"><h3>${EXPERIMENT_TITLES[e.name] ?? escapeHtml(e.what)}</h3><div class="chart" role="img" aria-label="${escapeHtml(e.what)}"></div></figure>`).join('')}</div></details></section>`;
  const items =
    '<section id="estimates" aria-labelledby="estimates-title"><p class="kicker">Estimates</p><h2 id="estimates-title">Every estimate of the chosen methods</h2><div id="items"></div></section>';
  const leftOut = '<details id="left-out" class="suite" hidden><summary></summary><ul></ul></details>';
  const suite = `<details class="suite"><summary>The suite as it was run</summary><pre>${escapeHtml(run.meta.suite_text)}</pre></details>`;
  const cut = FIGURES.findIndex(f => f.id === 'ablation');
  return (
    head +
    FIGURES.slice(0, cut).map(figureHtml).join('') +
    tables +
    FIGURES.slice(cut).map(figureHtml).join('') +
    spb +
    items +
    leftOut +
    suite
  );
}
