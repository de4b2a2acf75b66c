// The paper's suite on stand-ins of its models: the names, files and vocabulary of the real ones, few dimensions, random weights.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { torchFile } from "./torch_files.mjs";
import { commit } from "./world.mjs";

const dVocab = 48262, dModel = 8, nHeads = 2, dHead = 4, dMlp = 32, nCtx = 40;
const tokenizerRepo = "NeelNanda/gpt-neox-tokenizer-digits";
const offline = { HF_ENDPOINT: "http://127.0.0.1:9", HF_HUB_OFFLINE: "1" };

function weights(nLayers) {
  let x = 12345;
  const tensor = (...shape) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; ++i) data[i] = ((x = (x * 1103515245 + 12345) % 2147483648) / 2147483648 - 0.5) * 0.2;
    return { shape, data };
  };
  const out = { "embed.W_E": tensor(dVocab, dModel), "pos_embed.W_pos": tensor(nCtx, dModel) };
  for (let l = 0; l < nLayers; ++l) {
    const put = (name, ...shape) => (out[`blocks.${l}.${name}`] = tensor(...shape));
    for (const ln of ["ln1", "ln2"]) put(`${ln}.w`, dModel), put(`${ln}.b`, dModel);
    for (const h of ["Q", "K", "V"]) put(`attn.W_${h}`, nHeads, dModel, dHead), put(`attn.b_${h}`, nHeads, dHead);
    put("attn.W_O", nHeads, dHead, dModel), put("attn.b_O", dModel);
    put("mlp.W_in", dModel, dMlp), put("mlp.b_in", dMlp), put("mlp.W_out", dMlp, dModel), put("mlp.b_out", dModel);
  }
  return { ...out, "ln_final.w": tensor(dModel), "ln_final.b": tensor(dModel), "unembed.W_U": tensor(dModel, dVocab), "unembed.b_U": tensor(dVocab) };
}

// As ARC's frequencies32-*.pt: one count for each token. Two tokens lie in the paper's band.
function counts() {
  const data = new BigInt64Array(dVocab);
  data[11] = 2n ** 32n - 1300n;
  data[300] = 1000n;
  data[40000] = 300n;
  return torchFile({ shape: [dVocab], data });
}

function addStandIns(hub, source) {
  for (const n of [1, 2, 4]) {
    const config = { n_layers: n, d_model: dModel, n_heads: nHeads, d_head: dHead, d_mlp: dMlp, d_vocab: dVocab, n_ctx: nCtx, act_fn: "gelu", attn_only: false,
      normalization: "LN", tokenizer_name: tokenizerRepo, model_name: `GELU_${n}L512W_C4_Code`, seed: 1, use_bfloat16_matmul: true };
    hub.repos[`NeelNanda/GELU_${n}L512W_C4_Code`] = { commit, refs: { main: commit }, large: ["model_final.pth"],
      files: { "config.json": Buffer.from(JSON.stringify(config)), "model_final.pth": torchFile(weights(n)) } };
  }
  hub.repos[tokenizerRepo] = { commit, refs: { main: commit }, large: [], files: { "tokenizer.json": readFileSync(join(source, "models/tokenizer.json")) } };
}

export const paperCases = {
  async "the paper's suite needs its models and counts, no other files"(w) {
    const saved = { ...w.hub.repos }, home = join(w.cache, "home"), at = { ...offline, DEEPTAIL_HOME: home };
    addStandIns(w.hub, w.source);
    mkdirSync(join(home, "truth"), { recursive: true });
    writeFileSync(join(home, "frequencies32.pt"), counts());
    for (const n of [1, 2, 4]) w.expectGood(await w.fetch(`gelu-${n}l`));
    Object.assign(w.hub.repos, saved);
    const inspected = JSON.parse((await w.run(["model", "inspect", "gelu-2l", "--json"], offline)).out);
    w.expect("the name that counts go by", inspected.model === "gelu-2l", inspected.model);
    const dists = readdirSync(join(w.source, "distributions/neox-digits")).map((file) => file.split(".")[0]);
    w.expect("eight distributions", dists.length === 8, dists);
    w.expectGood(await w.run(["truth", "import", join(home, "frequencies32.pt"), "--model-name", "gelu-1l", "--dist-name", "hex", "--out", join(home, "truth/gelu-1l-hex.json")], at));
    for (const n of [1, 2, 4])
      for (const dist of dists) {
        const file = join(home, "truth", `gelu-${n}l-${dist}.json`), text = readFileSync(join(home, "truth/gelu-1l-hex.json"), "utf8");
        writeFileSync(file, text.replace('"gelu-1l"', `"gelu-${n}l"`).replace('"hex"', `"${dist}"`));
      }
    // 3 models, 8 distributions, 2 targets: of the 48 items of mc, the first.
    const suite = join(w.source, "suites/paper.toml"), run = join(home, "run");
    const done = await w.run(["bench", "run", suite, "--out", run, "--only", "mc", "--shard", "1/48", "--quiet"], at);
    w.expectGood(done);
    w.expect("one item", done.out.includes("all 1 items"), done.out);
    const header = JSON.parse(readFileSync(join(run, "run.json"), "utf8"));
    w.expect("the whole grid", header.items === 48 * 9 && header.truths.length === 24, `${header.items} ${header.truths.length}`);
    w.expect("names", header.models.map((m) => m.name).join() === "gelu-1l,gelu-2l,gelu-4l", JSON.stringify(header.models));
  },
};
