// A few sentences for a reader in a hurry: [head, text] each, and only what the data carry.
function bestTakeaway(order, k) {
  const [best, second] = order,
    profile = run.profiles[k].name,
    exact = `Exact answers would get ${plain(meanNoise(judgedPairs(), k), 2)}, since the truth is itself a count.`;
  if (!second)
    return [`${label(best.v)} alone is shown`, `Its ${profile} loss is ${plain(best.loss[k].mean)}. ${exact}`];
  const unclear = indistinct(order, k),
    few = unclear.some(e => difference(best.v, e.v, k) === null);
  const losses = `Its ${profile} loss is ${plain(best.loss[k].mean)}, against ${plain(second.loss[k].mean)} of ${label(second.v)}, the next`;
  if (!unclear.length)
    return [
      `Trust ${label(best.v)} most`,
      `${losses}; it is clearly lower than that of every other method shown. ${exact}`,
    ];
  return [
    `${label(best.v)} has the lowest loss, but not clearly`,
    few
      ? `${losses}: too few targets in common to tell them apart. ${exact}`
      : `${losses}. On other targets ${listed(unclear.map(e => label(e.v)))} might do better. ${exact}`,
  ];
}

// Intervals are worth something if they hold the truth and are narrow; a claim needs enough targets.
const ENOUGH_FOR_COVERAGE = 20;
function sureTakeaway(entries) {
  const held = e => `hold the truth for ${percent(e.inside)} of ${plural(e.scoredTargets, 'target')} (${widthText(e)})`;
  const telling = entries.filter(e => e.scored && tellsSomething(e));
  if (!telling.length)
    return [
      'No intervals that say much',
      'Those of every method shown reach further than a factor of ten each way, or mostly have no lower end.',
    ];
  const honest = telling.filter(e => e.inside >= 0.9).sort((a, b) => a.width - b.width)[0],
    shown = honest ?? telling.reduce((a, b) => (b.inside > a.inside ? b : a));
  if (shown.scoredTargets < ENOUGH_FOR_COVERAGE)
    return ['Too few targets to judge intervals', `Those of ${label(shown.v)} ${held(shown)}.`];
  return honest
    ? [`The intervals of ${label(shown.v)} can be taken at their word`, `They ${held(shown)}.`]
    : ['No intervals can be taken at their word', `Those of ${label(shown.v)} come closest: they ${held(shown)}.`];
}

// Over all methods that are shown, or not at all: methods on different inputs, or as dear as each other, are not put in order.
function costTakeaway(entries, best) {
  const [cheap, next] = [...entries].sort((a, b) => a.cost - b.cost),
    cost = e => `${plain(10 ** e.cost, 2)} per target (${seconds(e.seconds)})`,
    does = e => (e.scored ? `, and ${errorText(e)}` : '');
  if (!next || entries.some(e => !e.everywhere) || next.cost - cheap.cost < log10(1.05)) return null;
  const among = state.methods.size < run.methods.length ? ' of the methods shown' : '';
  return [
    `${label(cheap.v)} needs the fewest forward passes${among}`,
    `${cost(cheap)}${does(cheap)}${best && best.v !== cheap.v ? `; ${label(best.v)} takes ${cost(best)}${does(best)}` : ''}.`,
  ];
}
function questionTakeaway() {
  const turn = inversion();
  if (turn)
    return [
      'Which is better depends on the question',
      `${turn.ahead} beats ${turn.behind} when errors both ways cost the same (benchmarking), and loses to it under ${turn.profile}, where underestimates cost more.`,
    ];
  return oneOrder()
    ? ['The order does not depend on the question', 'Even-handed and cautious profiles rank the methods alike.']
    : [
        'The order changes with the question, not clearly',
        'Profiles rank the methods differently, but nowhere by more than other targets could.',
      ];
}
function unknownTakeaways(entries) {
  const n = entries.reduce((sum, e) => sum + e.n, 0);
  const reach = [...entries].sort((a, b) => a.zeros - b.zeros);
  return [
    ['No truth is known', `${plural(n, 'estimate')} with intervals and costs; nothing here says which are right.`],
    [
      'How often each answers',
      `${listed(reach.map(e => `${label(e.v)} for ${percent(1 - e.zeros)}`))} of its estimates; the others are upper bounds.`,
    ],
  ];
}
function takeaways() {
  const entries = pooled(),
    order = byLoss(entries, state.profile);
  const told = !entries.length
    ? [['Nothing is chosen', 'Choose at least one method, model and distribution.']]
    : order.length
      ? [
          bestTakeaway(order, state.profile),
          sureTakeaway(entries),
          costTakeaway(entries, order[0]),
          order.length > 1 ? questionTakeaway() : null,
        ]
      : [
          ...(entries.some(e => e.scored)
            ? [['No method has all of the chosen pairs', 'Losses of different inputs are not put in order.']]
            : unknownTakeaways(entries)),
          costTakeaway(entries, null),
        ];
  return takeawayHtml(told);
}
const takeawayHtml = told =>
  told
    .filter(Boolean)
    .map(([head, text]) => `<div><strong>${escapeHtml(head)}</strong><p>${escapeHtml(text)}</p></div>`)
    .join('');
