// What is chosen, in the address: #methods=mc,qld&profile=audit. What is not named there is as at first.
const CHOICES = {
  methods: { all: () => run.methods.map(m => [m, m]) },
  models: { all: () => run.models.map((m, i) => [m.name, i]) },
  dists: { all: () => run.dists.map((d, i) => [d, i]) },
};
const written = name => encodeURIComponent(plainName(name));

function addressOf(item = null) {
  const parts = [];
  for (const [key, { all }] of Object.entries(CHOICES))
    if (state[key].size !== all().length)
      parts.push(
        `${key}=${all()
          .filter(([, value]) => state[key].has(value))
          .map(([name]) => written(name))
          .join(',')}`,
      );
  const settings = run.methods
    .filter(m => state.setting[m] !== headlineOf(m))
    .map(m => run.variants[state.setting[m]].name);
  if (settings.length) parts.push(`settings=${settings.map(written).join(',')}`);
  if (state.profile) parts.push(`profile=${written(run.profiles[state.profile].name)}`);
  if (state.spbProfile !== state.profile) parts.push(`tables=${written(run.profiles[state.spbProfile].name)}`);
  if (state.scatter !== 'method') parts.push(`scatter=${state.scatter}`);
  if (state.costUnit !== 'forwards') parts.push(`cost=${state.costUnit}`);
  if (item !== null) parts.push(`item=${item}`);
  return parts.join('&');
}
function writeAddress(item = null) {
  const address = addressOf(item);
  history.replaceState(null, '', address ? `#${address}` : location.href.split('#')[0]);
}

// The choices of an address; names that this page does not have are passed over. Returns the item that it leads to.
function readAddress(hash) {
  const decoded = text => {
    try {
      return safeName(decodeURIComponent(text));
    } catch {
      return '';
    }
  };
  const given = new Map(
    hash
      .replace(/^#/, '')
      .split('&')
      .filter(part => part.includes('='))
      .map(part => [
        part.slice(0, part.indexOf('=')),
        part
          .slice(part.indexOf('=') + 1)
          .split(',')
          .map(decoded),
      ]),
  );
  resetState();
  for (const [key, { all }] of Object.entries(CHOICES))
    if (given.has(key))
      state[key] = new Set(
        all()
          .filter(([name]) => given.get(key).includes(name))
          .map(([, value]) => value),
      );
  for (const name of given.get('settings') ?? []) {
    const v = run.variants.findIndex(x => x.name === name);
    if (v >= 0) state.setting[run.variants[v].method] = v;
  }
  const profile = key => run.profiles.findIndex(p => p.name === given.get(key)?.[0]);
  state.profile = Math.max(0, profile('profile'));
  state.spbProfile = profile('tables') >= 0 ? profile('tables') : state.profile;
  if (given.get('scatter')?.[0] === 'pair') state.scatter = 'pair';
  if (given.get('cost')?.[0] === 'seconds') state.costUnit = 'seconds';
  const item = Number(given.get('item')?.[0] ?? /^#item-(\d+)$/.exec(hash)?.[1] ?? NaN);
  return Number.isInteger(item) && item >= 0 && item < run.rows.length ? item : null;
}
// An address that names no choice leads to a place on the page and changes nothing.
const namesChoices = hash => hash.length < 2 || hash.includes('=') || /^#item-\d+$/.test(hash);
