// A hub on loopback, as far as deeptail asks it: the list of a revision's files, the files, ranges, and redirects of large files to a second
// host. `faults` says what goes wrong. Every request is kept.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const gitHash = (bytes) => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

// repos: { "org/name": { commit, refs: { main: commit }, files: { path: bytes }, large: [path, ...] } }
export class Hub {
  constructor(repos) {
    this.repos = repos;
    this.requests = []; // { host: "hub" or "store", path, token, range }
    this.faults = {};
    this.hub = createServer((request, response) => this.answer("hub", request, response));
    this.store = createServer((request, response) => this.answer("store", request, response));
  }

  async start() {
    const ports = [];
    for (const server of [this.hub, this.store]) {
      await new Promise((done) => server.listen(0, "127.0.0.1", done));
      ports.push(server.address().port);
    }
    this.endpoint = `http://127.0.0.1:${ports[0]}`;
    this.storeAddress = `http://localhost:${ports[1]}`; // another name, too
  }

  stop() {
    for (const server of [this.hub, this.store]) server.closeAllConnections(), server.close();
  }

  // Forgets what was asked, and what went wrong.
  reset(faults = {}) {
    this.requests = [];
    this.faults = faults;
  }

  asked(part) {
    return this.requests.filter((request) => request.path.includes(part));
  }

  hashOf(repo, path) {
    const { files, large } = this.repos[repo];
    return large.includes(path) ? sha256(files[path]) : gitHash(files[path]);
  }

  answer(host, request, response) {
    const path = decodeURIComponent(request.url.split("?")[0]);
    this.requests.push({ host, path, url: request.url, token: request.headers.authorization, range: request.headers.range });
    const fault = this.faults.answer?.(host, path, request);
    if (fault) return response.writeHead(fault.status, fault.headers ?? {}).end(fault.body ?? "no");
    const api = path.match(/^\/api\/models\/(.+?)\/revision\/(.+)$/);
    if (host === "hub" && api) return this.list(api[1], api[2], response);
    const file = path.match(/^\/(.+?)\/resolve\/([^/]+)\/(.+)$/);
    if (file) return this.file(host, file, request, response);
    response.writeHead(404, { "X-Error-Code": "RepoNotFound" }).end();
  }

  list(name, revision, response) {
    const repo = this.repos[name];
    if (!repo) return response.writeHead(401, { "X-Error-Code": "RepoNotFound" }).end();
    const commit = repo.refs[revision] ?? (repo.commit.startsWith(revision) ? repo.commit : undefined);
    if (!commit) return response.writeHead(404, { "X-Error-Code": "RevisionNotFound" }).end();
    const siblings = Object.entries(repo.files).map(([path, bytes]) => {
      const lfs = repo.large.includes(path) ? { sha256: sha256(bytes), size: bytes.length, pointerSize: 134 } : undefined;
      return { rfilename: path, size: bytes.length, blobId: gitHash(bytes), lfs };
    });
    const text = JSON.stringify({ id: name, sha: commit, siblings: this.faults.siblings?.(siblings) ?? siblings });
    response.writeHead(200, { "Content-Type": "application/json" }).end(this.faults.listing?.(text) ?? text);
  }

  file(host, [, name, , path], request, response) {
    const repo = this.repos[name];
    const whole = this.faults.content?.(path, repo.files[path]) ?? repo.files[path];
    if (host === "hub" && repo.large.includes(path) && !this.faults.noRedirect)
      return response.writeHead(302, { Location: this.faults.location ?? this.storeAddress + request.url }).end("moved");
    const from = this.faults.ignoreRange ? 0 : Number(request.headers.range?.match(/^bytes=(\d+)-$/)?.[1] ?? 0);
    const bytes = whole.subarray(from);
    const headers = { "Content-Length": this.faults.length?.(path, bytes.length) ?? bytes.length, ...this.faults.headers };
    if (from > 0) headers["Content-Range"] = this.faults.range ?? `bytes ${from}-${whole.length - 1}/${whole.length}`;
    response.writeHead(from > 0 ? 206 : 200, headers);
    const cut = this.faults.cut?.(path, from);
    if (cut === undefined) return this.send(response, bytes);
    response.write(bytes.subarray(0, cut), () => (this.faults.stall ? undefined : setTimeout(() => response.destroy(), 20)));
  }

  // In pieces, slowly where that is asked for.
  async send(response, bytes) {
    const { pause } = this.faults;
    if (!pause) return response.end(bytes);
    for (let at = 0; at < bytes.length; at += pause.bytes) {
      response.write(bytes.subarray(at, at + pause.bytes));
      await new Promise((done) => setTimeout(done, pause.ms));
    }
    response.end();
  }
}
