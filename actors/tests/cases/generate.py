#!/usr/bin/env python3
"""Makes random cron cases and lets oracle.py answer them.

    cargo run --locked -p fencepost-core --example dump_zone_data -- DIR
    python3 actors/tests/cases/generate.py --tzdata DIR --release 2026f \
        --seed 2026 --rows 3000 > actors/tests/cases/cron-random.jsonl

Both read the same zone data.  The first line of the output says how it was made; every other line
is one case: expr, tz, gap, overlap, after, and either expect (up to five instants; ends: true when
the schedule is finished after them) or field (refused; the field that the refusal names, "" for
the expression as a whole).
"""
import argparse
import json
import os
import random
import re
import sys
from datetime import datetime, timedelta, timezone
from multiprocessing import Pool

import oracle

UTC = timezone.utc
LIVELY = """Europe/Berlin America/New_York Europe/London Europe/Dublin Australia/Lord_Howe
    Antarctica/Troll Africa/Casablanca Africa/El_Aaiun America/St_Johns Pacific/Apia Asia/Tehran
    America/Nuuk America/Scoresbysund Antarctica/Casey Asia/Beirut Asia/Gaza Africa/Cairo
    America/Havana America/Santiago America/Asuncion America/Sao_Paulo Pacific/Kwajalein
    Pacific/Chatham Pacific/Norfolk Pacific/Fiji Asia/Kathmandu Asia/Pyongyang Asia/Kolkata
    Australia/Eucla Europe/Lisbon Europe/Chisinau America/Vancouver America/Edmonton
    America/Caracas Africa/Monrovia Asia/Singapore Atlantic/Azores Europe/Istanbul
    Europe/Volgograd Asia/Amman Africa/Juba Pacific/Easter UTC Etc/GMT+12 Etc/GMT-14""".split()
LIMIT_TIMES_A_DAY = 4000


class Maker:
    def __init__(self, seed, names, directory):
        self.r = random.Random(seed)
        self.names = names
        self.directory = directory

    # ----------------------------------------------------------- expression

    def case(self, text):
        return self.r.choice([text, text.lower(), text.title()])

    def number(self, low, high):
        value = self.r.randint(low, high)
        return f"{value:02}" if self.r.random() < 0.05 else str(value)

    def item(self, low, high, words=None, star=0.2):
        r, kind = self.r, self.r.random()
        if kind < star:
            return "*" if r.random() < 0.5 else f"*/{r.randint(1, high - low + 3)}"
        if kind < star + 0.2:
            a, b = sorted((r.randint(low, high), r.randint(low, high)))
            step = f"/{r.randint(1, 9)}" if r.random() < 0.5 else ""
            if words and r.random() < 0.5 and b - low < len(words):
                return self.case(words[a - low]) + "-" + self.case(words[b - low]) + step
            return f"{a}-{b}{step}"
        if words and r.random() < 0.4:
            return self.case(r.choice(words))
        return self.number(low, high)

    def field(self, low, high, words=None, star=0.2):
        count = self.r.choice([1, 1, 1, 1, 2, 2, 3, 4])
        return ",".join(self.item(low, high, words, star if count == 1 else 0.03) for _ in range(count))

    def day_of_month(self):
        def one():
            kind = self.r.random()
            if kind < 0.10:
                return self.case("L")
            if kind < 0.18:
                return self.case("LW")
            if kind < 0.30:
                return str(self.r.randint(1, 31)) + self.case("W")
            return self.item(1, 31, None, 0.1)
        if self.r.random() < 0.45:
            return self.r.choice(["*", "*", "*", "?", "*/2", "*/7", "*,15"])
        return ",".join(one() for _ in range(self.r.choice([1, 1, 1, 2, 3])))

    def day_of_week(self):
        words = list(oracle.DAYS)

        def one():
            kind = self.r.random()
            day = self.case(self.r.choice(words)) if self.r.random() < 0.4 else str(self.r.randint(0, 7))
            if kind < 0.12:
                return f"{day}#{self.r.choice('12345L')}"
            if kind < 0.22:
                return f"{day}L"
            return self.item(0, 7, words + ["SUN"], 0.1)
        if self.r.random() < 0.45:
            return self.r.choice(["*", "*", "*", "?", "*/2", "*/4"])
        plus = "+" if self.r.random() < 0.15 else ""
        return plus + ",".join(one() for _ in range(self.r.choice([1, 1, 1, 2, 3])))

    def expression(self, hours):
        r = self.r
        if r.random() < 0.02:
            return self.case(r.choice(list(oracle.MACROS)))
        minute = self.field(0, 59)
        hour = r.choice([str(r.choice(hours)), ",".join(map(str, hours[:2]))]) if hours and r.random() < 0.75 \
            else self.field(0, 23)
        month = "*" if r.random() < 0.6 else self.field(1, 12, list(oracle.MONTHS))
        parts = [minute, hour, self.day_of_month(), month, self.day_of_week()]
        kind = r.random()
        if kind < 0.35:
            parts.insert(0, r.choice(["0", "30", "59", "*/20", "0,15", "10-40/15", self.number(0, 59)]))
            if kind < 0.12:
                year = r.randint(2020, 2040)
                parts.append(r.choice(["*", str(year), f"{year}-{year + 3}", f"{year},{year + 7}", "*/3",
                                       f"{year}-9998/5", "1970-2024", "2099-2101,6000"]))
        return r.choice([" ", " ", " ", "  ", "\t"]).join(parts)

    def broken(self, text):
        """The text with a few characters changed; often no longer an expression."""
        letters = "0123456789*/-,#?+LWAMONSU@ .x7"
        for _ in range(self.r.choice([1, 1, 2, 3])):
            at = self.r.randint(0, len(text))
            kind = self.r.random()
            if kind < 0.4:
                text = text[:at] + self.r.choice(letters) + text[at:]
            elif kind < 0.7:
                text = text[:at] + text[at + 1:]
            else:
                text = text[:at] + self.r.choice(letters) + text[at + 1:]
        return text

    # ------------------------------------------------------------------ when

    def year(self):
        kind = self.r.random()
        if kind < 0.55:
            return self.r.randint(2019, 2040)
        if kind < 0.85:
            return self.r.randint(1971, 2099)
        return self.r.choice([2100, 2101, 2399, 2400, 3000, 5001, 7777, 9990, self.r.randint(2100, 9900)])

    def change(self, zone, year):
        """An instant of that year at which the offset changes, or None."""
        low = datetime(year, 1, 1, tzinfo=UTC)
        days = [low + timedelta(days=k) for k in range(366)]
        pairs = [(a, b) for a, b in zip(days, days[1:])
                 if a.astimezone(zone).utcoffset() != b.astimezone(zone).utcoffset()]
        if not pairs:
            return None
        low, high = self.r.choice(pairs)
        before = low.astimezone(zone).utcoffset()
        while high - low > timedelta(seconds=1):
            middle = low + timedelta(seconds=(high - low).total_seconds() // 2)
            low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
        return high

    def after(self, zone):
        """A start, and hours of the day that a clock change near it touches."""
        year, hours = self.year(), []
        change = self.change(zone, year) if self.r.random() < 0.7 else None
        if change is None:
            at = datetime(year, 1, 1, tzinfo=UTC) + timedelta(seconds=self.r.randint(0, 365 * 86400))
        else:
            near = self.r.choice([-90000, -7200, -3600, -1800, -1, 0, 1, 600, 1800, 3600, 5400])
            at = change + timedelta(seconds=near)
            for back in (3600, 1800, 0, -1800, -3600):
                hours.append((change - timedelta(seconds=back)).astimezone(zone).hour)
            hours.append((change + timedelta(seconds=-1)).astimezone(zone).hour + 1)
            hours = [h % 24 for h in hours]
            self.r.shuffle(hours)
        text = at.strftime("%Y-%m-%dT%H:%M:%S")
        if self.r.random() < 0.1:
            text += f".{self.r.randint(1, 999999):06}"
        return text + "Z", hours

    def row(self):
        r = self.r
        tz = r.choice(LIVELY) if r.random() < 0.7 else r.choice(self.names)
        zone = oracle.load_zone(tz, self.directory)
        after, hours = self.after(zone)
        expr = self.expression(hours)
        if r.random() < 0.22:
            expr = self.broken(expr)
        return {"expr": expr, "tz": tz, "gap": r.choice(["next-valid", "skip"]),
                "overlap": r.choice(["first", "second", "both"]), "after": after}


# -------------------------------------------------------------------- answers

NAMES = ["second", "minute", "hour", "day-of-month", "month", "day-of-week", "year"]


def refused_field(expr):
    """The first field, as written, that is refused on its own; "" if it is none of them."""
    try:
        oracle.Schedule(expr)
    except oracle.Refused as e:
        if not any(str(e).startswith(name) for name in NAMES):
            return ""
    fields = expr.replace("\t", " ").split()
    for field, name in zip(fields, NAMES[1:] if len(fields) == 5 else NAMES):
        alone = ["*"] * 7
        alone[NAMES.index(name)] = field
        try:
            oracle.Schedule(" ".join(alone))
        except oracle.Refused:
            return name
    return ""


def answer(job):
    row, directory, wanted = job
    try:
        schedule = oracle.Schedule(row["expr"])
    except oracle.Refused as e:
        never = {"never": True} if str(e).startswith("never") else {"field": refused_field(row["expr"])}
        return {**row, **never}
    times = len(schedule.hours) * len(schedule.minutes) * len(schedule.seconds)
    if times > LIMIT_TIMES_A_DAY:
        return None
    got = [oracle.rfc3339(t) for t in oracle.next_instants(
        row["expr"], row["tz"], row["after"], wanted, row["gap"], row["overlap"], directory)]
    return {**row, "expect": got, **({"ends": True} if len(got) < wanted else {})}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tzdata", required=True)
    p.add_argument("--release", required=True)
    p.add_argument("--seed", type=int, default=2026)
    p.add_argument("--rows", type=int, default=2600)
    a = p.parse_args()
    names = sorted(os.path.relpath(os.path.join(folder, name), a.tzdata)
                   for folder, _, files in os.walk(a.tzdata) for name in files)
    maker = Maker(a.seed, names, a.tzdata)
    print(json.dumps({"generated": f"generate.py --seed {a.seed} --rows {a.rows}", "tzdb": a.release}))
    jobs = []
    while len(jobs) < a.rows * 5 // 4:
        row = maker.row()
        # H is an extension of ours that the oracle does not know.
        if not re.search(r"(^|[\s,+])H($|[\s,(/])", row["expr"].upper()):
            jobs.append((row, a.tzdata, maker.r.randint(1, 5)))
    count = 0
    with Pool(2) as pool:
        for row in pool.imap(answer, jobs, chunksize=8):
            if row is not None and count < a.rows:
                count += 1
                print(json.dumps(row, separators=(",", ":")))
    print(f"{count} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
