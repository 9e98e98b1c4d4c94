"""What hostile servers and files do to frameproof: each row is tried on the binary, and must keep its bounds.

    python3 tests/hostile target/release/frameproof            every row, and the table of docs/security.md
    python3 tests/hostile target/release/frameproof --write    renews the table, with what is measured now

`--only WORD` takes the rows with this word, `--show` prints what frameproof says, `--factor 4` allows that many times the time.
"""

import argparse
import concurrent.futures
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import files  # noqa: E402
import measure  # noqa: E402
import servers  # noqa: E402
import table  # noqa: E402


# All rows together may take so many seconds.
ALL = 240
# Twice as much of the same takes at most so many times as long, in processor time: no more than in proportion.
TWICE = 2.6
TWICE_AS_MUCH = {
    "events: 200,000 cases": "events: 100,000 cases",
    "baseline: 20,000 entries": "baseline: 10,000 entries",
}


def busy():
    """How many times longer than alone this process takes now, for what else the machine has to do."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def not_in_proportion(results, again):
    """Rows of twice as much that take more than in proportion. Beside other rows that is a guess: then both are measured alone, by `again`."""
    for name, half in TWICE_AS_MUCH.items():
        if name in results and half in results:
            times = results[name].worked / max(results[half].worked, 0.01)
            if times > TWICE:
                times = again(name).worked / max(again(half).worked, 0.01)
            print(f"{'FAIL' if times > TWICE else 'ok  '} {name}: {times:.2f} times as long as half of them")
            if times > TWICE:
                yield name


def wrong(row, got, factor):
    """What the row does not keep."""
    if got.code not in (row.code, row.also):
        yield f"exit code {got.code} instead of {row.code}"
    if row.told not in got.out:
        yield f"it does not say «{row.told}»"
    if got.took > row.seconds * factor:
        yield f"{got.took:.1f} s instead of {row.seconds * factor:g}, {got.worked:.1f} s of them worked"
    if got.peak > row.mebibytes:
        yield f"{got.peak} MiB instead of {row.mebibytes}"
    yield from got.broken


def tell(row, got, said):
    """Says what a row came to, and returns what is wrong with it."""
    problems = list(wrong(row, got, said.factor))
    mark = "FAIL" if problems else "ok  "
    print(f"{mark} {row.name}: exit code {got.code}, {got.took:.1f} s, {got.peak} MiB", flush=True)
    for problem in problems:
        print(f"       {problem}")
    if problems or said.show:
        print("".join(f"     | {line[:300]}\n" for line in got.out.splitlines()[-40:]), end="", flush=True)
    return problems


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("binary", type=Path)
    said.add_argument("--write", action="store_true")
    said.add_argument("--only", default="")
    said.add_argument("--new", action="store_true", help="only what the table does not have")
    said.add_argument("--show", action="store_true")
    said.add_argument("--jobs", type=int, default=3)
    said.add_argument("--factor", type=float, default=1)
    said = said.parse_args()
    binary = str(said.binary.resolve())
    rows = [(measure.server, row) for row in servers.ROWS] + [(measure.file, row) for row in files.ROWS]
    chosen = [(kind, row) for kind, row in rows if said.only in row.name]
    if said.new:
        chosen = [(kind, row) for kind, row in chosen if not table.has(row)]
    began, load = time.monotonic(), busy()
    with concurrent.futures.ThreadPoolExecutor(said.jobs) as pool:
        results, failures = {}, 0
        for (_, row), result in zip(chosen, pool.map(lambda each: each[0](binary, each[1], said.factor), chosen)):
            results[row.name] = result
            failures += bool(tell(row, result, said))
    took, load = time.monotonic() - began, max(load, busy())
    ways = {row.name: (kind, row) for kind, row in chosen}
    failures += len(list(not_in_proportion(results, lambda name: ways[name][0](binary, ways[name][1], said.factor))))
    print(f"{len(chosen)} behaviours ({len(servers.ROWS)} of servers and {len(files.ROWS)} of files exist), {failures} broke a bound, {took:.0f} s")
    if len(chosen) == len(rows):
        allowed = ALL * said.factor * load
        print(f"all of them may take {ALL} s, times {said.factor:g} (--factor), times {load:.1f} for what else this machine does")
        failures += took > allowed
    # A table says what holds.
    if said.write and not failures:
        table.renew(results)
    elif not said.only and not said.new:
        failures += table.stale()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
