#!/usr/bin/env node
// A worker for Fencepost in plain JavaScript (Node 18 or newer), without packages.
//
// Claims jobs over HTTP, keeps them alive, reports how they ended, and stops what it has lost. Register your own
// functions in `handlers`. The rules that it keeps are in docs/guides/workers.md; `fencepost worker check` tests them.
//
//     FENCEPOST_SERVER=http://127.0.0.1:4480 FENCEPOST_TOKEN=... node worker.mjs --queues images --count 4

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";

const now = () => performance.now();

/** For how long after its lease an outcome is still told. */
const REPORT_LATE_MS = 60_000;

/** A handler's failure. `permanent`: trying again cannot help. `noEffect`: certainly nothing happened. */
export class Failed extends Error {
  constructor(message, { permanent = false, noEffect = false } = {}) {
    super(message);
    this.permanent = permanent;
    this.noEffect = noEffect;
  }
}

/** The attempt was cancelled, or is not this worker's any more. */
export class Stopped extends Error {}

/** The server answered with a problem. */
class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? "no detail");
    this.status = status;
    this.code = problem.code ?? "";
    this.hint = problem.hint ?? "";
    this.retryable = problem.retryable ?? status >= 500;
  }
}

class Server {
  constructor(url, token) {
    this.url = url.replace(/\/$/, "");
    this.token = token;
  }

  async post(path, body, timeoutMs = 20_000) {
    const answer = await fetch(this.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const value = JSON.parse((await answer.text()) || "{}");
    if (!answer.ok) throw new Refused(answer.status, value);
    return value;
  }

  /** Sends the same request until the server has answered it for good: each of them is safe to repeat. */
  async postUntilAnswered(path, body, until) {
    for (let wait = 50; ; wait = Math.min(wait * 2, 2_000)) {
      try {
        return await this.post(path, body);
      } catch (error) {
        if (error instanceof Refused && !error.retryable) throw error;
      }
      if (until()) throw new Stopped("its lease is over");
      await pause(wait);
    }
  }
}

/** One attempt: what to do, and whether it is still ours. */
class Attempt {
  constructor(claimed, askedAt) {
    this.claimed = claimed;
    this.grant = claimed.grant;
    this.payload = claimed.payload;
    this.cancelled = false;
    // The time it took to hear of the lease is taken off: only the server knows when it began.
    this.mineUntil = askedAt + claimed.lease_ms;
    this.timeoutAt = askedAt + claimed.timeout_ms;
  }

  renew(state, askedAt) {
    if (state.state === "lost") this.mineUntil = 0;
    else this.mineUntil = Math.max(this.mineUntil, askedAt + state.lease_ms);
    this.cancelled ||= state.state === "cancel";
  }

  get isLost() {
    return now() >= Math.min(this.mineUntil, this.timeoutAt);
  }

  /** To be called before every step that has an effect: throws when the attempt must stop. */
  check() {
    if (this.cancelled || this.isLost) throw new Stopped("cancelled or lost");
  }

  async sleep(ms) {
    for (const end = now() + ms; now() < end; await pause(Math.min(20, Math.max(0, end - now())))) this.check();
    this.check();
  }
}

export class Worker {
  constructor(server, { name, queues, count, handlers }) {
    Object.assign(this, { server, name, queues, count, handlers, stopping: false });
    this.attempts = new Map();
  }

  async run() {
    const beating = this.keepAlive();
    while (!this.stopping) {
      const room = this.count - this.attempts.size;
      if (room > 0) await this.claim(room);
      else await pause(10);
    }
    while (this.attempts.size > 0) await pause(10);
    this.ended = true;
    await beating;
  }

  async claim(room) {
    // One number for one claim, whatever becomes of the answer: sent again, it brings the same attempts.
    const body = { worker: this.name, claim: randomUUID(), queues: this.queues, count: room, wait: 2 };
    let said = false;
    for (let wait = 50; ; wait = Math.min(wait * 2, 2_000)) {
      const askedAt = now();
      try {
        const answer = await this.server.post("/v1/worker/claim", body);
        for (const claimed of answer.attempts) {
          const attempt = new Attempt(claimed, askedAt);
          this.attempts.set(attempt.grant, attempt);
          void (this.stopping ? this.giveBack(attempt) : this.work(attempt));
        }
        return;
      } catch (error) {
        if (error instanceof Refused && !error.retryable) throw error;
        if (wait >= 400 && !said && !this.stopping) {
          said = true;
          const why = error.cause?.message ?? error.message;
          console.error(`worker: no answer from ${this.server.url}, it is asked again: ${why}`);
        }
      }
      if (this.stopping) return;
      await pause(wait);
    }
  }

  /** Attempts that are still ours. */
  get held() {
    return [...this.attempts.values()].filter((attempt) => !attempt.isLost);
  }

  /** Milliseconds until the first lease ends. */
  get soonest() {
    return Math.min(1_000, ...this.held.map((attempt) => attempt.mineUntil - now()));
  }

  async keepAlive() {
    while (!this.ended) {
      await pause(Math.max(50, this.soonest / 3));
      const [held, soonest] = [this.held, this.soonest];
      if (held.length === 0) continue;
      const askedAt = now();
      const body = { worker: this.name, attempts: held.map((attempt) => ({ grant: attempt.grant })) };
      try {
        const answer = await this.server.post("/v1/worker/heartbeat", body, Math.max(200, soonest / 3));
        held.forEach((attempt, at) => attempt.renew(answer.attempts[at], askedAt));
      } catch (error) {
        // Another server: nothing here is ours any more.
        if (error.code === "grant_invalid") held.forEach((attempt) => attempt.renew({ state: "lost" }, askedAt));
      }
    }
  }

  async work(attempt) {
    try {
      const handler = this.handlers[attempt.claimed.name];
      if (!handler) throw new Failed(`no handler named ${attempt.claimed.name}`, { noEffect: true });
      const output = (await handler(attempt)) ?? "";
      const text = typeof output === "string" ? output : JSON.stringify(output);
      await this.report(attempt, { result: "succeeded", output: text });
    } catch (error) {
      if (error instanceof Stopped) {
        if (attempt.cancelled && !attempt.isLost) await this.report(attempt, { result: "cancelled" });
      } else {
        // A bug in a handler is a failed attempt, not the end of the worker.
        const { permanent = false, noEffect = false } = error;
        await this.report(attempt, { result: "failed", error: error.message, permanent, no_effect: noEffect });
      }
    } finally {
      this.attempts.delete(attempt.grant);
    }
  }

  async report(attempt, result) {
    const body = { worker: this.name, grant: attempt.grant, ...result };
    try {
      // An outcome is repeated until it is recorded, and held alive meanwhile. Also after its lease: it may settle a job
      // that is uncertain by now, and is kept as evidence otherwise.
      const giveUpAt = Math.max(now(), attempt.mineUntil) + REPORT_LATE_MS;
      await this.server.postUntilAnswered("/v1/worker/finish", body, () => now() >= giveUpAt);
    } catch (error) {
      console.error(`${attempt.claimed.job}: not recorded: ${error.message}`);
    }
  }

  async giveBack(attempt) {
    const body = { worker: this.name, grant: attempt.grant };
    try {
      await this.server.postUntilAnswered("/v1/worker/release", body, () => attempt.isLost);
    } catch {
      // It is another's by now.
    } finally {
      this.attempts.delete(attempt.grant);
    }
  }
}

/** The work that `fencepost worker check` asks for. */
async function conformance(attempt) {
  const wish = attempt.payload ?? {};
  switch (wish.do) {
    case "succeed":
      return wish.output ?? "";
    case "fail":
      throw new Failed(wish.error ?? "failed", { permanent: wish.permanent, noEffect: wish.no_effect });
    case "work":
      await attempt.sleep(wish.ms);
      return "worked";
    case "tick":
      for (const end = now() + wish.ms; now() < end; ) {
        await attempt.sleep(50);
        const signal = AbortSignal.timeout(1_000);
        await fetch(wish.url, { method: "POST", body: attempt.claimed.token, signal }).catch(() => {});
      }
      return "ticked";
    default:
      throw new Failed(`cannot do ${wish.do}`, { permanent: true, noEffect: true });
  }
}

const option = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
};

const leave = (code, why) => {
  console.error(`worker: ${why}`);
  process.exit(code);
};

const url = process.env.FENCEPOST_SERVER ?? "http://127.0.0.1:4480";
const token = process.env.FENCEPOST_TOKEN;
if (!token) leave(2, "no token: set FENCEPOST_TOKEN to what the file token of the server's folder holds");
const server = new Server(url, token);
const worker = new Worker(server, {
  name: option("name", `${hostname()}-${process.pid}`),
  queues: option("queues", "default").split(","),
  count: Number(option("count", "4")),
  // An example: put your own work here.
  handlers: { conformance, resize: (attempt) => `would resize to ${attempt.payload?.width}` },
});
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (worker.stopping = true));
try {
  await worker.run();
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  // What is not worth a repetition is for a person: a wrong token (4), say, or a queue that cannot be.
  const code = [401, 403].includes(error.status) ? 4 : 1;
  leave(code, `${url} refused the claim: ${error.message} ${error.hint} [${error.code}]`);
}
process.exit(0);
