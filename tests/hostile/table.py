"""The table of docs/security.md."""

from pathlib import Path

import files
import servers

PAGE = Path(__file__).parent.parent.parent / "docs" / "security.md"
BEGIN, END = "<!-- tests/hostile -->", "<!-- tests/hostile: end -->"
GROUPS = [
    ("Not a WebSocket server", servers.CONNECTS),
    ("Answers to the upgrade", servers.ANSWERS),
    ("Frames", servers.FRAMES),
    ("Ends of connections", servers.CLOSES),
    ("Messages", servers.MESSAGES),
    ("Time", servers.TIMES),
    ("TLS", servers.TLS),
    ("Other commands than `run`", servers.OTHERS),
    ("Told to end", servers.SIGNALS),
    ("What a campaign keeps", servers.CAMPAIGNS),
    ("Files that cannot be read", files.READING),
    ("Files with wrong content", files.CONTENT),
    ("Traces, events, findings and corpora", files.RECORDS),
    ("Where reports go", files.PLACES),
    ("Servers that differ each time, and what costs most to show", servers.FURTHER),
    ("Files that are large in another direction", files.FURTHER),
]
HEAD = ["behaviour", "what happens", "exit code", "bound", "measured"]


def about(took, peak):
    """Rounded up, so that the same machine says the same: the first of 1, 2, 5, 10 … that is above."""
    steps = [step * 10**power for power in (-1, 0, 1, 2) for step in (1, 2, 5)]
    seconds = next((step for step in steps if took <= step), took)
    return f"< {seconds:g} s, < {-(-peak // 16) * 16} MiB"


def cells(row):
    """A row but for what was measured."""
    code = str(row.code) if row.also is None else f"{row.code} or {row.also}"
    told = row.told.replace("|", "\\|").strip() or "–"
    return [row.name.replace("|", "\\|").replace("<", "\\<"), told, code, f"{row.seconds} s, {row.mebibytes} MiB"]


def lines(measured):
    """The table. `measured`: the last cell of a row."""
    count = f"{len(servers.ROWS)} behaviours of servers and {len(files.ROWS)} of files"
    yield f"{count}, tried by `.ci/hostile` on the release build. The measured values, on two cores beside other work, are rounded up."
    for title, rows in GROUPS:
        yield from ("", f"### {title}", "", f"| {' | '.join(HEAD)} |", "|---|---|---:|---|---|")
        for row in rows:
            yield f"| {' | '.join([*cells(row), measured(row)])} |"


def parts():
    """The page before the table, the table, and the page behind it."""
    before, rest = PAGE.read_text().split(BEGIN + "\n")
    table, after = rest.split(END)
    return before, table.rstrip("\n").split("\n"), after


def known(table):
    """What was measured of each row when the table was written."""
    split = (line.strip("| ").split(" | ") for line in table if line.startswith("| "))
    return {each[0]: each[-1] for each in split if len(each) == len(HEAD)}


def has(row):
    """Whether it has a row."""
    return cells(row)[0] in known(parts()[1])


def renew(results):
    """Writes the table; what was not tried now keeps what was measured before."""
    before, table, after = parts()
    old = known(table)

    def measured(row):
        got = results.get(row.name)
        return about(got.took, got.peak) if got else old.get(cells(row)[0], "?")

    text = "\n".join(lines(measured))
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    return 0


def stale():
    """Whether the table says something else than the rows do; what was measured may be what it was."""
    _, table, _ = parts()
    old = known(table)
    if list(lines(lambda row: old.get(cells(row)[0], "?"))) == table:
        return 0
    print("the table of docs/security.md is not what tests/hostile says: python3 tests/hostile target/release/frameproof --write")
    return 1
