// Run folders made up for one question each.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const CRC = Array.from({ length: 256 }, (_, i) => {
  let c = i;
  for (let bit = 0; bit < 8; ++bit) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  return c;
});
function crc32(text) {
  let c = ~0;
  for (const byte of Buffer.from(text)) c = CRC[(c ^ byte) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}
const sha256 = text => createHash('sha256').update(text).digest('hex');
export const SAMPLES = 2 ** 28;

// One item; an estimate of zero is an upper bound.
export function item({
  model = 'm',
  dist = 'd',
  target,
  method,
  variant = method,
  count = 1000,
  samples = SAMPLES,
  p,
  low,
  high,
  cost = 1000,
  warnings = [],
}) {
  const ends = p > 0 ? [low ?? p / 2, high ?? Math.min(1, 2 * p)] : [low ?? 0, high ?? 1e-3];
  return {
    item: sha256(`${model}|${dist}|${target}|${variant}`).slice(0, 16),
    model,
    dist,
    target: [target],
    target_text: `t${target}`,
    method,
    variant,
    replica: 0,
    seconds: 1,
    calibration_seed: 1,
    truth: samples ? { count, samples } : null,
    estimate: {
      p,
      log10_p: p > 0 ? Math.log10(p) : '-inf',
      ci95: ends,
      status: p > 0 ? 'ok' : 'not_reached_upper_bound',
      guarantee: 'consistent',
      seed: 1,
      cost: {
        forward: cost,
        backward: 0,
        score_evals: 0,
        logits: 0,
        flops: cost * 1e6,
        forward_equivalents: cost,
        seconds: cost / 1e4,
      },
      warnings,
    },
  };
}

export function writeRun(folder, items, { suite = 'made-up', model_sha256 = 'a'.repeat(64) } = {}) {
  mkdirSync(folder, { recursive: true });
  const lines = items.flatMap(i => {
    const data = JSON.stringify(i);
    return [data, JSON.stringify({ commit: i.item, crc32: crc32(data) })];
  });
  const names = key => [...new Set(items.map(i => i[key]))];
  writeFileSync(join(folder, 'shard-0.jsonl'), `${lines.join('\n')}\n`);
  writeFileSync(
    join(folder, 'run.json'),
    JSON.stringify({
      schema: 1,
      deeptail: '0.1.0',
      suite: { name: suite, sha256: sha256(''), text: '' },
      profiles: ['benchmarking', 'oversight', 'stress', 'audit'],
      models: names('model').map(name => ({ name, sha256: model_sha256, n_layers: 1, d_model: 8, d_vocab: 512 })),
      distributions: names('dist').map(name => ({ name, sha256: 'b'.repeat(64) })),
      truths: [],
      items: items.length,
      device: 'cpu',
      created: '2025-01-01T00:00:00Z',
    }),
  );
  return folder;
}

// Estimates of n targets by several methods: { name: (q, k) => fields of item }. Truths go down from 1e-5.
export function made(n, methods, common = {}) {
  return Array.from({ length: n }, (_, k) => k).flatMap(k => {
    const count = Math.round(2600 / (1 + (k % 20))),
      q = count / SAMPLES;
    return Object.entries(methods).map(([method, answer]) =>
      item({ target: k + 1, method, count, ...common, ...answer(q, k) }),
    );
  });
}
