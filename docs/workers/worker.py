#!/usr/bin/env python3
"""A worker for Fencepost in Python, with the standard library only.

Claims jobs over HTTP, keeps them alive, reports how they ended, and stops what it has lost. Register your own
functions in HANDLERS. The rules that it keeps are in docs/guides/workers.md; `fencepost worker check` tests them.

    FENCEPOST_SERVER=http://127.0.0.1:4480 FENCEPOST_TOKEN=... python3 worker.py --queues images --count 4
"""

import argparse
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.parse
import uuid

# For how long after its lease an outcome is still told.
REPORT_LATE_S = 60


class Failed(Exception):
    """A handler's failure. `permanent`: trying again cannot help. `no_effect`: certainly nothing happened."""

    def __init__(self, message, permanent=False, no_effect=False):
        super().__init__(message)
        self.permanent = permanent
        self.no_effect = no_effect


class Stopped(Exception):
    """The attempt was cancelled, or is not this worker's any more."""


class Refused(Exception):
    """The server answered with a problem."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail", "no detail"))
        self.status = status
        self.code = problem.get("code", "")
        self.hint = problem.get("hint", "")
        self.retryable = problem.get("retryable", status >= 500)


class Server:
    """Requests to the server, one connection each."""

    def __init__(self, url, token):
        self.url = urllib.parse.urlsplit(url)
        self.token = token

    def post(self, path, body, timeout=20):
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.url.hostname, self.url.port, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            text = answer.read()
            value = json.loads(text) if text else {}
            if answer.status >= 300:
                raise Refused(answer.status, value)
            return value
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def post_until_answered(self, path, body, timeout=20, until=lambda: False):
        """Sends the same request until the server has answered it for good: each of them is safe to repeat."""
        pause = 0.05
        while True:
            try:
                return self.post(path, body, timeout)
            except Refused as refused:
                if not refused.retryable:
                    raise
            except OSError:
                pass
            if until():
                raise Stopped()
            time.sleep(pause)
            pause = min(pause * 2, 2)


class Attempt:
    """One attempt: what to do, and whether it is still ours."""

    def __init__(self, claimed, asked_at):
        self.claimed = claimed
        self.grant = claimed["grant"]
        self.work = claimed["name"]
        self.payload = claimed.get("payload")
        self.lock = threading.Lock()
        self.cancelled = False
        self.ended = False
        # The time it took to hear of the lease is taken off: only the server knows when it began.
        self.mine_until = asked_at + claimed["lease_ms"] / 1000
        self.timeout_at = asked_at + claimed["timeout_ms"] / 1000

    def renew(self, state, asked_at):
        with self.lock:
            if state["state"] == "lost":
                self.mine_until = 0
            else:
                self.mine_until = max(self.mine_until, asked_at + state["lease_ms"] / 1000)
                self.cancelled = self.cancelled or state["state"] == "cancel"

    def is_lost(self):
        with self.lock:
            return time.monotonic() >= min(self.mine_until, self.timeout_at)

    def check(self):
        """To be called before every step that has an effect: raises when the attempt must stop."""
        if self.cancelled or self.is_lost():
            raise Stopped()

    def sleep(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            time.sleep(min(0.02, max(0, end - time.monotonic())))
        self.check()


class Worker:
    def __init__(self, server, name, queues, count):
        self.server, self.name, self.queues, self.count = server, name, queues, count
        self.attempts = {}
        self.lock = threading.Condition()
        self.stopping = False

    def run(self):
        threading.Thread(target=self.keep_alive, daemon=True).start()
        while not self.stopping:
            with self.lock:
                while len(self.attempts) >= self.count and not self.stopping:
                    self.lock.wait(0.2)
                room = self.count - len(self.attempts)
            if not self.stopping:
                self.claim(room)
        with self.lock:
            while self.attempts:
                self.lock.wait(0.2)

    def claim(self, room):
        # One number for one claim, whatever becomes of the answer: sent again, it brings the same attempts.
        body = {"worker": self.name, "claim": str(uuid.uuid4()), "queues": self.queues, "count": room, "wait": 2}
        pause, said = 0.05, False
        while True:
            asked_at = time.monotonic()
            try:
                answer = self.server.post("/v1/worker/claim", body, timeout=20)
                break
            except Refused as refused:
                if not refused.retryable:
                    raise
                why = refused
            except OSError as error:
                why = error
            if self.stopping:
                return
            if pause >= 0.4 and not said:
                said = True
                print(f"worker: no answer from {self.server.url.geturl()}, it is asked again: {why}", file=sys.stderr)
            time.sleep(pause)
            pause = min(pause * 2, 2)
        for claimed in answer["attempts"]:
            attempt = Attempt(claimed, asked_at)
            with self.lock:
                self.attempts[attempt.grant] = attempt
            if self.stopping:
                threading.Thread(target=self.give_back, args=(attempt,)).start()
            else:
                threading.Thread(target=self.work, args=(attempt,)).start()

    def keep_alive(self):
        while True:
            soonest, _ = self.held()
            time.sleep(max(0.05, min(soonest / 3, 5)))
            soonest, held = self.held()
            if not held:
                continue
            asked_at = time.monotonic()
            body = {"worker": self.name, "attempts": [{"grant": attempt.grant} for attempt in held]}
            try:
                states = self.server.post("/v1/worker/heartbeat", body, timeout=max(0.2, soonest / 3))["attempts"]
            except Refused as refused:
                if refused.code == "grant_invalid":
                    # Another server: nothing here is ours any more.
                    states = [{"state": "lost"}] * len(held)
                else:
                    continue
            except OSError:
                continue
            for attempt, state in zip(held, states):
                attempt.renew(state, asked_at)

    def held(self):
        """Seconds until the first lease ends, and the attempts that are still ours."""
        with self.lock:
            held = [attempt for attempt in self.attempts.values() if not attempt.is_lost()]
        now = time.monotonic()
        return min((attempt.mine_until - now for attempt in held), default=1), held

    def work(self, attempt):
        try:
            handler = HANDLERS.get(attempt.work)
            if handler is None:
                raise Failed(f"no handler named {attempt.work}", no_effect=True)
            output = handler(attempt)
            text = output if isinstance(output, str) else "" if output is None else json.dumps(output, default=str)
            self.report(attempt, {"result": "succeeded", "output": text})
        except Stopped:
            if attempt.cancelled and not attempt.is_lost():
                self.report(attempt, {"result": "cancelled"})
        except Failed as failed:
            self.report(
                attempt,
                {
                    "result": "failed",
                    "error": str(failed),
                    "permanent": failed.permanent,
                    "no_effect": failed.no_effect,
                },
            )
        except Exception as error:  # A bug in a handler is a failed attempt, not the end of the worker.
            self.report(attempt, {"result": "failed", "error": f"{type(error).__name__}: {error}"})
        finally:
            self.forget(attempt)

    def report(self, attempt, result):
        body = {"worker": self.name, "grant": attempt.grant, **result}
        try:
            # An outcome is repeated until it is recorded, and held alive meanwhile. Also after its lease: it may settle a
            # job that is uncertain by now, and is kept as evidence otherwise.
            give_up_at = max(time.monotonic(), attempt.mine_until) + REPORT_LATE_S
            self.server.post_until_answered(
                "/v1/worker/finish", body, until=lambda: time.monotonic() >= give_up_at
            )
        except (Refused, Stopped) as lost:
            print(f"{attempt.claimed['job']}: not recorded: {lost}", file=sys.stderr)

    def give_back(self, attempt):
        body = {"worker": self.name, "grant": attempt.grant}
        try:
            self.server.post_until_answered("/v1/worker/release", body, until=attempt.is_lost)
        except (Refused, Stopped):
            pass
        finally:
            self.forget(attempt)

    def forget(self, attempt):
        with self.lock:
            self.attempts.pop(attempt.grant, None)
            self.lock.notify_all()


def conformance(attempt):
    """The work that `fencepost worker check` asks for."""
    wish = attempt.payload or {}
    what = wish.get("do")
    if what == "succeed":
        return wish.get("output", "")
    if what == "fail":
        raise Failed(wish.get("error", "failed"), wish.get("permanent", False), wish.get("no_effect", False))
    if what == "work":
        attempt.sleep(wish["ms"] / 1000)
        return "worked"
    if what == "tick":
        url = urllib.parse.urlsplit(wish["url"])
        end = time.monotonic() + wish["ms"] / 1000
        while time.monotonic() < end:
            attempt.sleep(0.05)
            sink = http.client.HTTPConnection(url.hostname, url.port, timeout=1)
            try:
                sink.request("POST", url.path, attempt.claimed["token"])
                sink.getresponse().read()
            except (OSError, http.client.HTTPException):
                pass
            finally:
                sink.close()
        return "ticked"
    raise Failed(f"cannot do {what!r}", permanent=True, no_effect=True)


def resize(attempt):
    """An example: put your own work here."""
    attempt.check()
    return f"would resize to {(attempt.payload or {}).get('width')}"


HANDLERS = {"conformance": conformance, "resize": resize}


def main():
    parser = argparse.ArgumentParser(description="A worker for Fencepost.")
    parser.add_argument("--queues", default="default", help="comma-separated")
    parser.add_argument("--count", type=int, default=4, help="attempts at once")
    parser.add_argument("--name", default=f"{socket.gethostname()}-{os.getpid()}")
    args = parser.parse_args()
    url = os.environ.get("FENCEPOST_SERVER", "http://127.0.0.1:4480")
    token = os.environ.get("FENCEPOST_TOKEN")
    if not token:
        print("worker: no token: set FENCEPOST_TOKEN to what the file token of the server's folder holds", file=sys.stderr)
        sys.exit(2)
    worker = Worker(Server(url, token), args.name, args.queues.split(","), args.count)

    def stop(_signal, _frame):
        worker.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        worker.run()
    except Refused as refused:
        # What is not worth a repetition is for a person: a wrong token (4), say, or a queue that cannot be.
        print(f"worker: {url} refused the claim: {refused} {refused.hint} [{refused.code}]", file=sys.stderr)
        sys.exit(4 if refused.status in (401, 403) else 1)


if __name__ == "__main__":
    main()
