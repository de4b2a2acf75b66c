// A hub that does what it should: what is asked for, what lands in the cache, and what is found there later.
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commit, token } from "./world.mjs";

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const offline = { HF_ENDPOINT: "http://127.0.0.1:9", HF_HUB_OFFLINE: "1" };

export const goodCases = {
  async "the layout, and only the files that a model needs"(w) {
    const got = await w.fetch("hf:org/tiny", {}, "--json");
    w.expectGood(got);
    const said = JSON.parse(got.out), snapshot = join(w.repo("org/tiny"), "snapshots", commit);
    w.expect("JSON", said.commit === commit && said.path === snapshot && said.files_fetched === 3, got.out);
    const names = ["config.json", "merges.txt", "model.safetensors"];
    const expected = [...names.map((name) => `blobs/${w.hub.hashOf("org/tiny", name)}`), "refs/main", ...names.map((name) => `snapshots/${commit}/${name}`)];
    w.expect("files", same(w.filesOf("org/tiny"), expected.sort()), w.filesOf("org/tiny"));
    w.expect("a relative link", readlinkSync(join(snapshot, "config.json")) === `../../blobs/${w.hub.hashOf("org/tiny", "config.json")}`);
    for (const name of names) w.expect(`content of ${name}`, readFileSync(join(snapshot, name)).equals(w.hub.repos["org/tiny"].files[name]));
    w.expect("the ref", readFileSync(join(w.repo("org/tiny"), "refs/main"), "utf8") === commit);
    w.hub.reset();
    const again = await w.fetch("hf:org/tiny");
    w.expect("nothing is fetched twice", again.out.includes("nothing was missing") && w.hub.requests.length === 1, again.out);
  },

  async "a fetched model is found without a network, by every name of its revision"(w) {
    w.expectRefused(await w.run(["model", "verify", "hf:org/tiny"]), "not in the HuggingFace cache", "(`deeptail model fetch`)");
    w.expect("finding asks nobody", w.hub.requests.length === 0);
    w.expectGood(await w.fetch("hf:org/tiny@step/1"));
    for (const revision of ["step/1", commit, commit.slice(0, 8)]) {
      const found = await w.run(["model", "inspect", `hf:org/tiny@${revision}`, "--json"], offline);
      w.expectGood(found);
      w.expect("the model's name has the commit", JSON.parse(found.out).model === `tiny@${commit.slice(0, 7)}`, found.out.slice(0, 80));
    }
    w.expectRefused(await w.run(["model", "inspect", "hf:org/tiny"], offline), "hf:org/tiny: not in the HuggingFace cache");
    w.expectGood(await w.fetch("hf:org/tiny@step/1", offline));
    w.expectRefused(await w.fetch("hf:org/tiny", offline), "HF_HUB_OFFLINE");
  },

  async "the cache is where the variables say"(w) {
    for (const [variables, place] of [
      [{ HF_HUB_CACHE: join(w.cache, "a") }, "a"],
      [{ HUGGINGFACE_HUB_CACHE: join(w.cache, "b") }, "b"],
      [{ HF_HOME: "", XDG_CACHE_HOME: join(w.cache, "c") }, "c/huggingface/hub"],
      [{ HF_HOME: "", HOME: join(w.cache, "d") }, "d/.cache/huggingface/hub"],
      [{ HF_HOME: "~/e", HOME: w.cache }, "e/hub"],
    ]) {
      w.expectGood(await w.fetch("hf:org/tiny", variables));
      w.expect(`expected it in ${place}`, existsSync(join(w.cache, place, "models--org--tiny/refs/main")));
      w.expectGood(await w.run(["model", "verify", "hf:org/tiny"], { ...variables, ...offline }));
    }
  },

  async "shards that the index names, an alias of the paper, a GGUF file"(w) {
    w.expectGood(await w.fetch("hf:org/sharded"));
    w.expect("shards", w.filesOf("org/sharded").filter((file) => file.startsWith("snapshots")).length === 4, w.filesOf("org/sharded"));
    w.expectRefused(await w.run(["model", "inspect", "gelu-1l"]), "hf:NeelNanda/GELU_1L512W_C4_Code: not in the HuggingFace cache");
    w.expectGood(await w.fetch("gelu-1l"));
    w.expect("the last weights alone", w.hub.asked(".pth").every((r) => r.path.endsWith("model_final.pth")), JSON.stringify(w.hub.requests));
    w.expectGood(await w.run(["model", "verify", "gelu-1l"], offline));
    const inspected = JSON.parse((await w.run(["model", "inspect", "gelu-1l", "--json"], offline)).out);
    w.expect("the tokenizer of another repository", inspected.tokenizer_file.endsWith(`models--NeelNanda--digits/snapshots/${commit}/tokenizer.json`), inspected.tokenizer_file);
    w.expectGood(await w.run(["model", "tokenize", "--model", "gelu-1l", "To be"], offline));
    w.expectRefused(await w.fetch("hf:org/gguf"), "hf:org/gguf:a-q4_0.gguf");
    const got = await w.fetch("hf:org/gguf:sub/b-q8_0.gguf", {}, "--json");
    w.expectGood(got);
    w.expect("a link from a folder", readFileSync(JSON.parse(got.out).path).equals(w.hub.repos["org/gguf"].files["sub/b-q8_0.gguf"]));
    w.expectRefused(await w.fetch("hf:org/gguf:a-q4_1.gguf"), "no file a-q4_1.gguf", 'did you mean "a-q4_0.gguf"?');
    w.expectGood(await w.fetch("hf:gpt0"));
  },

  async "families in whole files, shards and PyTorch's files give the logits of their folders"(w) {
    for (const name of Object.keys(w.hub.repos).filter((name) => name.startsWith("families/"))) {
      w.expectGood(await w.fetch(`hf:${name}`));
      w.expect("not what no model needs", w.hub.asked("fixture.json").length === 0);
      const logits = async (model) => (await w.run(["model", "logits", "--model", model, "--tokens", "1,2,3", "--json"], offline)).out;
      const [hub, folder] = [await logits(`hf:${name}`), await logits(join(w.source, "tests/data", name))];
      w.expect(`the same logits of ${name}`, hub === folder && folder.includes("argmax"), hub.slice(0, 200));
    }
  },

  async "a cached revision keeps its commit until it is refreshed"(w) {
    w.expectGood(await w.fetch("hf:org/tiny"));
    const repo = w.hub.repos["org/tiny"], next = "f".repeat(40), before = { ...repo };
    Object.assign(repo, { commit: next, refs: { main: next, [commit]: commit } });
    const kept = await w.fetch("hf:org/tiny", {}, "--json");
    repo.files = { ...repo.files, "merges.txt": Buffer.from("new") };
    const renewed = await w.fetch("hf:org/tiny", {}, "--json", "--refresh");
    w.hub.repos["org/tiny"] = before;
    w.expect("kept", JSON.parse(kept.out).commit === commit, kept.out + kept.err);
    w.expect("renewed, with one new file", JSON.parse(renewed.out).commit === next && JSON.parse(renewed.out).files_fetched === 1, renewed.out + renewed.err);
  },

  async "the token goes to the hub and not to the store"(w) {
    writeFileSync(join(w.cache, "token"), `${token}\n`);
    for (const variables of [{ HF_TOKEN: token }, {}]) {
      w.hub.reset();
      w.expectGood(await w.fetch("hf:org/tiny", { ...variables, HF_HUB_CACHE: join(w.cache, variables.HF_TOKEN ?? "file") }));
      const by = (host) => w.hub.requests.filter((request) => request.host === host);
      w.expect("the hub sees it", by("hub").length >= 3 && by("hub").every((request) => request.token === `Bearer ${token}`));
      w.expect("the store does not", by("store").length === 1 && by("store")[0].token === undefined, JSON.stringify(by("store")));
    }
    w.hub.reset();
    w.expectGood(await w.fetch("hf:org/big", { HF_HUB_DISABLE_IMPLICIT_TOKEN: "1" }));
    w.expect("nobody sees it", w.hub.requests.every((request) => request.token === undefined));
    // Another port of the same host is another host.
    w.hub.reset({ location: `${w.hub.storeAddress.replace("localhost", "127.0.0.1")}/org/sharded/resolve/${commit}/model-1.safetensors` });
    await w.fetch("hf:org/sharded");
    w.expect("nor on another port", w.hub.requests.some((r) => r.host === "store") && w.hub.requests.every((r) => r.host === "hub" || r.token === undefined));
  },

  async "two at once fetch each file once"(w) {
    w.hub.reset({ pause: { bytes: 1 << 19, ms: 60 } });
    const both = await Promise.all([w.fetch("hf:org/big", {}, "--json"), w.fetch("hf:org/big", {}, "--json")]);
    both.forEach(w.expectGood);
    w.expect("the weights came once", w.hub.asked("model.safetensors").filter((r) => r.host === "store").length === 1);
    w.expect("one fetched, one found", both.map((got) => JSON.parse(got.out).files_fetched).sort().join() === "0,2");
  },

  async "what another program put into the cache is used as it is"(w) {
    const snapshot = join(w.repo("org/tiny"), "snapshots", commit), { files } = w.hub.repos["org/tiny"];
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(join(w.repo("org/tiny"), "refs"));
    writeFileSync(join(w.repo("org/tiny"), "refs/main"), commit);
    writeFileSync(join(snapshot, "config.json"), files["config.json"]);
    w.expectRefused(await w.run(["model", "verify", "hf:org/tiny"], offline), "without the weights", "(`deeptail model fetch`)");
    w.expectGood(await w.fetch("hf:org/tiny", { HF_HUB_DISABLE_SYMLINKS: "1" }));
    w.expect("files, not links", lstatSync(join(snapshot, "model.safetensors")).isFile() && w.hub.asked("config.json").length === 0);
    w.expectGood(await w.run(["model", "verify", "hf:org/tiny"], offline));
    writeFileSync(join(w.repo("org/tiny"), "refs/main"), "../../../etc");
    w.expectRefused(await w.run(["model", "verify", "hf:org/tiny"], offline), "expected a commit of 40 hex digits");
    rmSync(snapshot, { recursive: true });
  },
};
