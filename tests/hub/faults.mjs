// A hub that breaks, lies and refuses: one sentence, exit code 2, nothing half-written, and the next call continues.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commit, token } from "./world.mjs";

const isListing = (path) => path.startsWith("/api/");
const partialOf = (w, repo, path) => join(w.repo(repo), "blobs", `${w.hub.hashOf(repo, path)}.deeptail-incomplete`);
const big = "org/big", weights = "model.safetensors";
const bytesOf = (w) => w.hub.repos[big].files[weights];

// Whole again, with the weights asked for from byte `from` on.
async function expectContinues(w, from) {
  w.hub.reset();
  w.expectGood(await w.fetch(`hf:${big}`));
  const asked = w.hub.asked(weights).filter((request) => request.host === "store");
  w.expect(`expected one request from byte ${from} on`, asked.length === 1 && asked[0].range === (from > 0 ? `bytes=${from}-` : undefined), JSON.stringify(asked));
  w.expect("the content", readFileSync(join(w.repo(big), "snapshots", commit, weights)).equals(bytesOf(w)));
  w.expect("no partial file", !existsSync(partialOf(w, big, weights)));
}

async function expectRefusal(w, faults, parts, environment) {
  w.hub.reset(faults);
  w.expectRefused(await w.fetch(`hf:${big}`, environment), ...parts);
  w.expectNothingHalfWritten(big);
}

const only = (test, answer) => ({ answer: (host, path) => (test(path) ? answer : undefined) });

export const faultCases = {
  async "answers that refuse, for the list and for a file"(w) {
    const rows = [
      [401, {}, {}, "no such repository, or it asks who you are"],
      [401, {}, { HF_TOKEN: token }, "the token (HF_TOKEN"],
      [401, { "X-Error-Code": "GatedRepo" }, {}, "set HF_TOKEN after asking for access on http"],
      [403, { "X-Error-Code": "GatedRepo" }, { HF_TOKEN: token }, "the repository is gated: ask for access on http"],
      [403, {}, { HF_TOKEN: token }, "may not read this repository"],
      [404, {}, {}, "no such repository or revision"],
      [404, { "X-Error-Code": "RevisionNotFound" }, {}, "no revision main"],
      [404, { "X-Error-Code": "EntryNotFound" }, {}, "no such file"],
      [408, {}, {}, "try again later"],
      [429, { "Retry-After": "17" }, {}, "try again in 17 seconds"],
      [429, { "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT" }, {}, "try again after Wed, 21 Oct"],
      [429, {}, {}, "wait a while"],
      [500, {}, {}, "try again later"],
      [503, {}, {}, "try again later"],
      [418, {}, {}, "not an answer that was expected"],
    ];
    for (const [status, headers, environment, part] of rows) {
      await expectRefusal(w, only(isListing, { status, headers }), [`answers ${status}`, part], environment);
      w.expect("the list alone was asked for, once", w.hub.requests.length === 1);
    }
    for (const [status, headers, environment, part] of rows)
      await expectRefusal(w, only((path) => path.endsWith("config.json"), { status, headers }), [`config.json: http`, `answers ${status}`, part], environment);
    w.hub.reset({ answer: (host) => (host === "store" ? { status: 403 } : undefined) });
    w.expectRefused(await w.fetch(`hf:${big}`), "answers 403: the address that the hub gave is not valid");
    await expectContinues(w, 0);
  },

  async "a connection that is cut goes on by itself, and for ever only a few times"(w) {
    let cuts = 0;
    w.hub.reset({ cut: (path) => (path === weights && cuts++ < 2 ? 100000 : undefined) });
    w.expectGood(await w.fetch(`hf:${big}`));
    w.expect("three requests", w.hub.asked(weights).filter((r) => r.host === "store").map((r) => r.range).join() === ",bytes=100000-,bytes=200000-", JSON.stringify(w.hub.asked(weights)));
    w.newCache();
    await expectRefusal(w, { cut: (path) => (path === weights ? 1000 : undefined) }, ["6000 of 3145728 bytes came", "fetching again continues"]);
    w.expect("the part is kept", statSync(partialOf(w, big, weights)).size === 6000);
    await expectRefusal(w, { cut: (path) => (path === weights ? 0 : undefined) }, ["6000 of 3145728 bytes came"]);
    await expectContinues(w, 6000);
  },

  async "a part that is too long, and a server that does not continue"(w) {
    await expectRefusal(w, { cut: (path) => (path === weights ? 1000 : undefined) }, ["bytes came"]);
    writeFileSync(partialOf(w, big, weights), Buffer.alloc(4 << 20));
    await expectContinues(w, 0);
    w.newCache();
    await expectRefusal(w, { cut: (path) => (path === weights ? 1000 : undefined) }, ["bytes came"]);
    w.hub.reset({ ignoreRange: true });
    w.expectGood(await w.fetch(`hf:${big}`));
    w.newCache();
    await expectRefusal(w, { cut: (path) => (path === weights ? 1000 : undefined) }, ["bytes came"]);
    await expectRefusal(w, { range: "bytes 0-3145727/3145728" }, ["was asked for the bytes from 6000 on and sent bytes 0-"]);
    await expectContinues(w, 6000);
  },

  async "lengths and contents that are not what was listed"(w) {
    const change = (edit) => ({ content: (path, bytes) => (path === weights ? edit(Buffer.from(bytes)) : undefined) });
    await expectRefusal(w, change((bytes) => Buffer.concat([bytes, Buffer.from("more")])), ["more than the 3145728 bytes"]);
    w.expect("nothing of it is kept", !existsSync(partialOf(w, big, weights)));
    await expectRefusal(w, change((bytes) => bytes.subarray(0, 5000)), ["5000 of 3145728 bytes came", "it ended there"]);
    await expectContinues(w, 5000);
    w.newCache();
    w.hub.reset({ length: (path, n) => n + 10, cut: (path, from) => bytesOf(w).length - from });
    w.expectGood(await w.fetch(`hf:${big}`)); // a length beyond the content, then cut: all that was listed is there
    w.newCache();
    await expectRefusal(w, change((bytes) => (bytes[77] ^= 1, bytes)), ["expected hash", "found", "try again"]);
    w.expect("nothing of it is kept", !existsSync(partialOf(w, big, weights)));
    w.newCache();
    await expectRefusal(w, { content: (path, bytes) => (path === "config.json" ? Buffer.alloc(bytes.length) : undefined) }, ["config.json", "expected hash"]);
    await expectRefusal(w, { headers: { "Content-Encoding": "gzip" } }, ["sent it as gzip"]);
    await expectContinues(w, 0);
  },

  async "redirects without end, to other protocols, and from the list"(w) {
    await expectRefusal(w, { location: `${w.hub.endpoint}/org/big/resolve/${commit}/${weights}` }, ["more than 10 redirects"]);
    await expectRefusal(w, { location: "file:///etc/passwd" }, ["leads to file:///etc/passwd"]);
    await expectRefusal(w, { location: "http://" }, []);
    w.hub.reset({ answer: (host, path) => (path.startsWith("/api/models/org/old/") ? { status: 307, headers: { Location: path.replace("old", "tiny") + "?blobs=true" } } : undefined) });
    w.hub.repos["org/old"] = w.hub.repos["org/tiny"];
    w.expectGood(await w.fetch("hf:org/old"));
    delete w.hub.repos["org/old"];
  },

  async "lists that are no lists"(w) {
    const listing = (edit) => ({ listing: edit }), siblings = (edit) => ({ siblings: (all) => (edit(all), all) });
    await expectRefusal(w, listing(() => "<html>"), ["revision/main?blobs=true"]);
    await expectRefusal(w, listing((text) => text.slice(0, -1)), ["revision/main?blobs=true"]);
    await expectRefusal(w, listing((text) => text.replace(commit, "../../x")), ["expected 40 hex digits"]);
    await expectRefusal(w, siblings((all) => (all[1].lfs.sha256 = "../../../x")), ["expected 64 hex digits"]);
    await expectRefusal(w, siblings((all) => (all[0].blobId = undefined)), ["blobId"]);
    await expectRefusal(w, siblings((all) => (all[0].size = -1)), ["size"]);
    for (const path of ["../evil", "/evil", "a/../../evil", "a\\..\\evil", "a\u0001", "", "a//b"])
      await expectRefusal(w, siblings((all) => (all[1].rfilename = path)), ["expected a path within the repository"]);
    await expectRefusal(w, siblings((all) => all.push(all[0])), ["a name that occurs once"]);
    w.hub.reset();
    w.expectRefused(await w.fetch("hf:org/nothing"), "found none of them among 1 files");
    w.hub.reset({ content: (path) => (path.endsWith("index.json") ? Buffer.from('{"weight_map": {"a": "../x"}}'.padEnd(68)) : undefined) });
    w.expectRefused(await w.fetch("hf:org/sharded"), "expected hash"); // before anything is made of it
    for (const name of ["hf:", "hf:a/b/c", "hf:../x", "hf:a--b/c", "hf:a/b@", "hf:a/b@../x", "hf:a/b:../x.gguf", "hf:a/b.git", "x/y", "hf:a/b@x\ny"])
      w.expectRefused(await w.fetch(name), "expected hf:ORG/NAME");
    w.expectRefused(await w.fetch("hf:org/missing"), "there is no such repository");
    w.expectRefused(await w.fetch("hf:org/tiny@nowhere"), "no revision nowhere");
  },

  async "nobody there, no answer, no room to write"(w) {
    w.expectRefused(await w.fetch("hf:org/tiny", { HF_ENDPOINT: "http://127.0.0.1:9" }), "cannot ask http://127.0.0.1:9");
    for (const endpoint of ["ftp://x", "huggingface.co", "http://a b"])
      w.expectRefused(await w.fetch("hf:org/tiny", { HF_ENDPOINT: endpoint }), "HF_ENDPOINT");
    w.expectRefused(await w.fetch("hf:org/tiny", { HF_TOKEN: "a\nb" }), "HF_TOKEN: expected a token");
    w.expectRefused(await w.fetch("hf:org/tiny", { HF_HUB_DOWNLOAD_TIMEOUT: "soon" }), "HF_HUB_DOWNLOAD_TIMEOUT");
    w.hub.reset({ cut: (path, from) => (path === weights ? 1000 - from : undefined), stall: true });
    w.expectRefused(await w.fetch(`hf:${big}`, { HF_HUB_DOWNLOAD_TIMEOUT: "1" }), "1000 of 3145728 bytes came");
    await expectContinues(w, 1000);
    writeFileSync(join(w.cache, "file"), "");
    w.expectRefused(await w.fetch("hf:org/tiny", { HF_HUB_CACHE: join(w.cache, "file") }), "cannot create the folder");
    w.hub.reset({ siblings: (all) => (all.find((file) => file.lfs).lfs.size = 2 ** 49, all) });
    w.expectRefused(await w.fetch("hf:org/tiny"), "needs 524288 GiB more");
  },

  async "Ctrl-C keeps the part, a kill leaves nothing in the way"(w) {
    for (const [signal, code] of [["SIGINT", 3], ["SIGTERM", 3], ["SIGKILL", null]]) {
      w.newCache();
      w.hub.reset({ pause: { bytes: 1 << 17, ms: 100 } });
      const running = w.start(["model", "fetch", `hf:${big}`]);
      const seen = () => existsSync(partialOf(w, big, weights)) && statSync(partialOf(w, big, weights)).size > 0;
      for (let i = 0; i < 200 && !seen(); ++i) await new Promise((done) => setTimeout(done, 20));
      running.child.kill(signal);
      const outcome = await running.ended;
      w.expect(`exit code ${code}`, outcome.code === code, `${outcome.code} ${outcome.err}`);
      if (code === 3) w.expect("says so", outcome.err.includes("the same command continues"), outcome.err);
      w.expectNothingHalfWritten(big);
      const size = statSync(partialOf(w, big, weights)).size;
      w.expect("a part", size > 0 && size < bytesOf(w).length, size);
      await expectContinues(w, size);
    }
  },
};
