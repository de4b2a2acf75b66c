// node run.mjs DEEPTAIL SOURCE: `deeptail model fetch` and hf: names against a hub on loopback that also breaks, lies and refuses.
import { resolve } from "node:path";
import { faultCases } from "./faults.mjs";
import { goodCases } from "./good.mjs";
import { paperCases } from "./paper.mjs";
import { makeWorld } from "./world.mjs";

const [deeptail, source, only] = process.argv.slice(2);
const world = await makeWorld(resolve(deeptail), source);
const cases = { ...goodCases, ...faultCases, ...paperCases };
for (const [name, test] of Object.entries(cases)) {
  if (only && !name.includes(only)) continue;
  world.current = name;
  world.newCache();
  world.hub.reset();
  try {
    await test(world);
  } catch (error) {
    world.failures.push(`${name}: ${error.stack}`);
  }
}
world.end();
for (const failure of world.failures) console.error(failure);
console.log(`${Object.keys(cases).length} cases, ${world.failures.length} failures`);
process.exit(world.failures.length === 0 ? 0 : 1);
