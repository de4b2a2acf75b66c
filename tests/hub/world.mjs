// What the cases of run.mjs share: a hub with repositories, caches of their own, and deeptail called as a user does.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Hub } from "./server.mjs";

export const commit = "0123456789abcdef0123456789abcdef01234567";
export const token = "hf_secretsecret";

function pseudoRandom(n, seed) {
  const bytes = Buffer.alloc(n);
  for (let i = 0, x = seed; i < n; ++i) bytes[i] = (x = (x * 1103515245 + 12345) % 2147483648) >> 16;
  return bytes;
}

function repositories(source) {
  const model = (name, file) => readFileSync(join(source, "tests/data/model", name, file));
  const config = Buffer.from(model("rand-1l-64", "config.json").toString().replace('"model_name": "rand-1l-64",', ""));
  const weights = model("rand-1l-64", "model.safetensors");
  const repo = (files, large, more = {}) => ({ commit, refs: { main: commit, "step/1": commit }, files, large, ...more });
  const index = Buffer.from(JSON.stringify({ weight_map: { a: "model-1.safetensors", b: "model-2.safetensors" } }));
  const folder = (name) => {
    const names = readdirSync(join(source, "tests/data/families", name));
    return repo(Object.fromEntries(names.map((file) => [file, readFileSync(join(source, "tests/data/families", name, file))])), names.filter((file) => /safetensors$|bin$/.test(file)));
  };
  return {
    ...Object.fromEntries(["gpt2-b", "llama-a", "llama-b", "qwen3-a"].map((name) => [`families/${name}`, folder(name)])),
    "org/tiny": repo(
      {
        ".gitattributes": Buffer.from("x"), "README.md": Buffer.from("# tiny"), "config.json": config, "model.safetensors": weights,
        "pytorch_model.bin": pseudoRandom(500, 1), "merges.txt": Buffer.alloc(0), "onnx/model.safetensors": pseudoRandom(99, 2),
      },
      ["model.safetensors", "pytorch_model.bin"]),
    "org/sharded": repo(
      {
        "config.json": config, "model.safetensors.index.json": index, "model-1.safetensors": pseudoRandom(5000, 3),
        "model-2.safetensors": pseudoRandom(7000, 4),
      },
      ["model-1.safetensors", "model-2.safetensors"]),
    "NeelNanda/digits": repo({ "tokenizer.json": readFileSync(join(source, "models/tokenizer.json")), "README.md": Buffer.from("x") }, []),
    "NeelNanda/GELU_1L512W_C4_Code": repo(
      {
        "config.json": Buffer.from(JSON.stringify({ ...JSON.parse(model("rand-1l-64-pth", "config.json")), tokenizer_name: "NeelNanda/digits" })), "model_final.pth": model("rand-1l-64-pth", "model_final.pth"),
        "checkpoints/step_1.pth": pseudoRandom(100, 5), "model_step_7.pth": pseudoRandom(100, 6),
      },
      ["model_final.pth"]),
    "org/gguf": repo({ "a-q4_0.gguf": pseudoRandom(300, 7), "sub/b-q8_0.gguf": pseudoRandom(3000, 8) }, ["a-q4_0.gguf", "sub/b-q8_0.gguf"]),
    "org/big": repo({ "config.json": config, "model.safetensors": pseudoRandom(3 << 20, 9) }, ["model.safetensors"]),
    "org/nothing": repo({ "README.md": Buffer.from("x") }, []),
    gpt0: repo({ "config.json": config, "model.safetensors": weights }, []),
  };
}

export async function makeWorld(deeptail, source) {
  const world = { source, hub: new Hub(repositories(source)), folder: mkdtempSync(join(tmpdir(), "deeptail-hub-")), failures: [], n: 0 };
  await world.hub.start();
  world.end = () => (world.hub.stop(), rmSync(world.folder, { recursive: true }));

  // A cache for each case.
  world.newCache = () => {
    world.cache = join(world.folder, `cache-${world.n++}`);
    mkdirSync(world.cache);
  };
  world.start = (words, environment = {}) => {
    const given = { PATH: process.env.PATH, HOME: world.folder, HF_HOME: world.cache, HF_ENDPOINT: world.hub.endpoint, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? "" };
    const child = spawn(deeptail, words, { cwd: world.folder, env: { ...given, ...environment }, stdio: ["ignore", "pipe", "pipe"] });
    const outcome = { out: "", err: "", child };
    child.stdout.on("data", (text) => (outcome.out += text));
    child.stderr.on("data", (text) => (outcome.err += text));
    outcome.ended = new Promise((done) => child.on("close", (code) => done(Object.assign(outcome, { code }))));
    return outcome;
  };
  world.run = (words, environment) => world.start(words, environment).ended;
  world.fetch = (name, environment, ...more) => world.run(["model", "fetch", name, "--quiet", ...more], environment);

  world.expect = (what, good, found = "") => {
    if (!good) world.failures.push(`${world.current}: ${what}${found === "" ? "" : `, found ${found}`}`);
  };
  // Exit code 2 and one sentence that holds every part.
  world.expectRefused = (outcome, ...parts) => {
    world.expect("expected exit code 2", outcome.code === 2, `${outcome.code} ${outcome.err}`);
    world.expect("expected one line", outcome.err.trimEnd().split("\n").length === 1 && outcome.out === "", outcome.err + outcome.out);
    for (const part of parts) world.expect(`expected "${part}"`, outcome.err.includes(part), outcome.err);
    world.expect("the token is in the message", !outcome.err.includes(token), outcome.err);
  };
  world.expectGood = (outcome) => world.expect("expected exit code 0", outcome.code === 0, `${outcome.code} ${outcome.err}`);

  world.repo = (name) => join(world.cache, "hub", `models--${name.replace("/", "--")}`);
  // All files of a repository's cache, relative; links as "name -> target" are not followed.
  world.filesOf = (name) => {
    const top = world.repo(name);
    const walk = (folder) =>
      existsSync(folder)
        ? readdirSync(folder, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? walk(join(folder, e.name)) : [relative(top, join(folder, e.name))]))
        : [];
    return walk(top).sort();
  };
  // Neither a snapshot nor a ref nor a blob under its name: at most partial files.
  world.expectNothingHalfWritten = (name) => {
    for (const file of world.filesOf(name)) {
      const good = file.endsWith(".deeptail-incomplete") || (!file.startsWith("refs/") && !file.includes(".tmp-"));
      world.expect("expected no ref and no temporary file", good, file);
      if (file.startsWith("blobs/") && !file.endsWith("-incomplete")) {
        const known = Object.keys(world.hub.repos[name].files).some((path) => file === `blobs/${world.hub.hashOf(name, path)}`
          && readFileSync(join(world.repo(name), file)).equals(world.hub.repos[name].files[path]));
        world.expect("expected blobs that are what their names say", known, file);
      }
    }
  };
  return world;
}
