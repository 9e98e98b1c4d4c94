//! What a process has said last about its own end: the line of its output that tells why, and where.

use crate::results::death::LastWords;

/// Longest text that is kept, in characters.
const LONGEST: usize = 240;
/// How a sanitizer begins its last sentence.
const SANITIZER: &str = "SUMMARY: ";
/// Log lines of the other stream that may be read behind what tells the end: the two are read side by side.
const BESIDE: usize = 8;
/// Lines at the level of an error that may stand behind what tells the end.
const NOTICES: usize = 2;
/// Words of a line in which its level is looked for; a date is some of them.
const HEAD: usize = 12;
/// Lines of a panic's message that are looked through for its end.
const MESSAGE: usize = 16;
/// Levels of lines that tell of an end, of an error, and of neither, in small letters.
const ENDS: &[&str] =
    &["fatal", "panic", "critical", "crit", "emerg", "emergency", "uncaught", "unhandled", "killed"];
const ERRORS: &[&str] = &["error", "err", "severe", "exception", "panicked"];
const REST: &[&str] = &["info", "debug", "trace", "warn", "warning", "notice", "verbose"];
/// What tells of an end without a level.
const PHRASES: &[&str] = &["segmentation fault", "out of memory", "terminate called", "stack overflow"];
/// How lines begin that go on with a traceback.
const CHAIN: &[&str] =
    &["During handling of the above exception", "The above exception was the direct cause"];
/// How lines begin, besides those that are indented, that belong to what a language says of its own end.
const TAILS: &[&str] = &[
    "note: ",
    "stack backtrace:",
    "fatal runtime error",
    "thread caused",
    "Aborted",
    "Segmentation fault",
    "Node.js v",
    "Caused by: ",
    "}",
    "==",
    "=>",
    "Shadow byte",
];
/// The same for Go.
const GO_TAILS: &[&str] = &["goroutine ", "created by ", "exit status ", "[signal ", "panic(", "runtime"];

/// The last words in a process's last lines of output (with whether they were written to standard error): a Rust or Go panic, the end
/// of a Python traceback, a sanitizer's summary, an exception of Node or Java, each with its place as `file:line`, where nothing was
/// logged behind it; else the last line that tells of an error. `None`: there is none.
pub(super) fn last_error(lines: &[(bool, &str)]) -> Option<LastWords> {
    let certain = [true, false].into_iter().find_map(|stream| certain(lines, stream));
    let (found, certain) = match certain {
        Some(found) => (found, true),
        None => (plain(lines)?, false),
    };
    let text: String = found.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = text.chars().count() > LONGEST;
    let text: String = text.chars().take(LONGEST).collect();
    let text = if cut { text + "\u{2026}" } else { text };
    (!text.is_empty()).then_some(LastWords { text, certain })
}

/// What a language says of its own end, where one of the two streams ends with it.
fn certain(lines: &[(bool, &str)], stream: bool) -> Option<String> {
    let (places, own): (Vec<usize>, Vec<&str>) =
        lines.iter().enumerate().filter(|(_, line)| line.0 == stream).map(|(at, line)| (at, line.1)).unzip();
    let (at, text) = summary(&own)
        .or_else(|| rust(&own))
        .or_else(|| go(&own))
        .or_else(|| python(&own))
        .or_else(|| thrown(&own))?;
    let beside = lines[*places.get(at)?..].iter().filter(|line| line.0 != stream);
    let levels: Vec<Level> = beside.filter_map(|line| level(line.1)).collect();
    (levels.len() <= BESIDE && !levels.contains(&Level::End)).then_some(text)
}

/// Whether all that follows a block belongs to it, but for a few lines in which whoever has noticed the end tells of it.
fn is_last(rest: &[&str]) -> bool {
    let mut others = rest.iter().filter(|line| !is_tail(line, TAILS));
    let noticed = others.by_ref().take(NOTICES).all(|line| level(line) == Some(Level::Error));
    noticed && others.next().is_none()
}

fn is_tail(line: &str, tails: &[&str]) -> bool {
    line.trim().is_empty()
        || line.starts_with(char::is_whitespace)
        || tails.iter().any(|tail| line.starts_with(tail))
}

/// `SUMMARY: AddressSanitizer: heap-use-after-free src/frame.c:12:3 in parse`.
fn summary(lines: &[&str]) -> Option<(usize, String)> {
    let is_summary = |line: &&str| line.trim_start().starts_with(SANITIZER) && line.contains("Sanitizer");
    let at = lines.iter().rposition(is_summary)?;
    let text = lines[at].trim_start().trim_start_matches(SANITIZER);
    is_last(&lines[at + 1..]).then(|| (at, text.to_owned()))
}

/// `thread 'main' panicked at src/frame.rs:10:5:`, and the message in the next line.
fn rust(lines: &[&str]) -> Option<(usize, String)> {
    let at = lines.iter().rposition(|line| line.contains("panicked at "))?;
    let (_, place) = lines[at].split_once("panicked at ")?;
    let rest = &lines[at + 1..];
    let message = rest.first().filter(|_| place.ends_with(':')).copied();
    // A message may have many lines.
    let note = |line: &&str| line.starts_with("note: run with") || line.starts_with("stack backtrace:");
    let end = rest.iter().take(MESSAGE).position(note).unwrap_or(usize::from(message.is_some()));
    is_last(&rest[end..]).then(|| (at, format!("panicked at {place} {}", message.unwrap_or_default())))
}

/// `panic: …` or `fatal error: …`, and the first place in the stack below that is not Go's own.
fn go(lines: &[&str]) -> Option<(usize, String)> {
    let begins = |line: &&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    let at = lines.iter().rposition(begins)?;
    let rest = &lines[at + 1..];
    // A function stands above its place; registers have their values.
    let belongs = |(index, line): (usize, &&str)| {
        is_tail(line, GO_TAILS)
            || line.contains(" 0x")
            || rest.get(index + 1).is_some_and(|next| next.starts_with('\t'))
    };
    if !rest.iter().enumerate().all(belongs) {
        return None;
    }
    let own = |line: &&&str| line.starts_with('\t') && line.contains(".go:") && !line.contains("/runtime/");
    let place = rest.iter().find(own).and_then(|line| line.split_whitespace().next());
    Some((at, with_place(lines[at], place)))
}

/// The last line of a traceback, and the last file that it names. One below a line of a log was logged, and ended nothing.
fn python(lines: &[&str]) -> Option<(usize, String)> {
    let begins = |line: &&str| line.contains("Traceback (most recent call last)");
    let at = lines.iter().rposition(begins)?;
    let is_frame = |line: &&&str| line.starts_with(' ') || line.trim().is_empty();
    let rest = &lines[at + 1..];
    let end = rest.iter().position(|line| !is_frame(&line))?;
    if was_logged(lines, at) || !is_last(&rest[end + 1..]) {
        return None;
    }
    let frame = rest[..end].iter().rev().find_map(|line| {
        let (file, rest) = line.trim().strip_prefix("File \"")?.split_once("\", line ")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("{file}:{number}"))
    });
    Some((at, with_place(rest[end], frame.as_deref())))
}

/// Whether the traceback that begins there, or the first of its chain, stands below a line that tells of an error.
fn was_logged(lines: &[&str], at: usize) -> bool {
    let mut first = at;
    // Above a traceback of a chain stand a blank line, the sentence that links it, and another blank line.
    while let Some(link) = lines[..first].iter().rposition(|line| !line.trim().is_empty())
        && CHAIN.iter().any(|words| lines[link].starts_with(words))
        && let Some(before) = lines[..link].iter().rposition(|line| line.contains("Traceback (most recent"))
    {
        first = before;
    }
    // `ERROR Traceback (most recent call last):` is one line of a log, too.
    let above = first.checked_sub(1).and_then(|above| level(lines[above]));
    above.or_else(|| level(lines[first])).is_some_and(|level| level != Level::Other)
}

/// `TypeError: …` of Node or `Exception in thread "main" …` of Java, and the first `at …` below.
fn thrown(lines: &[&str]) -> Option<(usize, String)> {
    let is_frame =
        |line: &&str| line.trim_start().starts_with("at ") && line.starts_with(char::is_whitespace);
    let last = lines.iter().rposition(&is_frame)?;
    let first = lines[..=last].iter().rposition(|line| !is_frame(line))? + 1;
    let frame = lines.get(first)?.trim().trim_start_matches("at ");
    let place = frame.rsplit_once('(').map_or(frame, |(_, place)| place.trim_end_matches(')'));
    is_last(&lines[last + 1..]).then(|| (first - 1, with_place(lines[first - 1], Some(place))))
}

/// The last line that tells of an end; if there is none, of an error.
fn plain(lines: &[(bool, &str)]) -> Option<String> {
    let last = |wanted: Level| {
        let found = lines.iter().rev().find(|line| level(line.1).as_ref() == Some(&wanted));
        found.map(|line| line.1.to_owned())
    };
    last(Level::End).or_else(|| last(Level::Error))
}

/// How bad it is what a line of a log tells.
#[derive(Debug, PartialEq, Eq)]
enum Level {
    End,
    Error,
    Other,
}

/// The first level that a line names at its beginning.
fn level(line: &str) -> Option<Level> {
    if CHAIN.iter().any(|words| line.starts_with(words)) {
        return None;
    }
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let named = words.take(HEAD).find_map(|word| {
        let is_in = |all: &[&str]| all.iter().any(|one| word.eq_ignore_ascii_case(one));
        let levels = [(ENDS, Level::End), (ERRORS, Level::Error), (REST, Level::Other)];
        levels.into_iter().find(|(all, _)| is_in(all)).map(|(_, level)| level)
    });
    let tells = || {
        let line = line.to_lowercase();
        PHRASES.iter().any(|phrase| line.contains(phrase))
    };
    named.or_else(|| tells().then_some(Level::End))
}

fn with_place(message: &str, place: Option<&str>) -> String {
    match place.filter(|place| !place.is_empty()) {
        Some(place) => format!("{} (at {place})", message.trim()),
        None => message.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_words(output: &str) -> Option<LastWords> {
        let lines: Vec<(bool, &str)> = output.lines().map(|line| (true, line)).collect();
        last_error(&lines)
    }

    #[test]
    fn each_language_is_understood() {
        for (output, expected) in [
            ("all is well\nlistening", None),
            ("", None),
            (
                "x\nthread 'main' (7) panicked at src/a.rs:10:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1` …",
                Some("panicked at src/a.rs:10:5: index out of bounds"),
            ),
            (
                "thread 'main' panicked at 'old style', src/a.rs:1:2\nnote: run with `RUST_BACKTRACE=1`",
                Some("panicked at 'old style', src/a.rs:1:2"),
            ),
            (
                "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/usr/go/src/runtime/panic.go:7 +0x1\nmain.f(0x5)\n\t/srv/main.go:12 +0x1d\n",
                Some("panic: runtime error: index out of range [5] with length 3 (at /srv/main.go:12)"),
            ),
            (
                "Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in <module>\n    f()\n  File \"/srv/app.py\", line 2, in f\n    raise ValueError(1)\nValueError: 1\n",
                Some("ValueError: 1 (at /srv/app.py:2)"),
            ),
            (
                "file:///srv/a.js:3\n  throw new TypeError('no')\n  ^\n\nTypeError: no\n    at f (file:///srv/a.js:3:9)\n    at main (file:///srv/a.js:9:1)\n\nNode.js v22",
                Some("TypeError: no (at file:///srv/a.js:3:9)"),
            ),
            (
                "Exception in thread \"main\" java.lang.IllegalStateException: no\n\tat com.Foo.bar(Foo.java:12)\n\tat com.Foo.main(Foo.java:3)",
                Some("Exception in thread \"main\" java.lang.IllegalStateException: no (at Foo.java:12)"),
            ),
            (
                "==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n    #0 0x2 in parse a.c:12\nSUMMARY: AddressSanitizer: heap-use-after-free a.c:12:3 in parse\n==1==ABORTING",
                Some("AddressSanitizer: heap-use-after-free a.c:12:3 in parse"),
            ),
            ("    at nowhere", None),
        ] {
            let expected = expected.map(|text| LastWords { text: text.to_owned(), certain: true });
            assert_eq!(last_words(output), expected, "{output}");
        }
    }

    #[test]
    fn a_line_of_a_log_is_told_and_not_taken_for_the_reason() {
        for (output, expected) in [
            ("one\nFATAL: no route\nerror: it is over", Some("FATAL: no route")),
            ("one error\nbye", Some("one error")),
            (
                "2026-11-22T02:32:16.123456Z ERROR app: rejected frame: 7\nINFO bye",
                Some("2026-11-22T02:32:16.123456Z ERROR app: rejected frame: 7"),
            ),
            ("INFO got {\"type\":\"abort\"}\nINFO got {\"type\":\"error\"}", None),
            ("the run aborts\nan assertion\nno errors\nerror_handler is ready", None),
            ("level=error msg=\"no\"", Some("level=error msg=\"no\"")),
            ("Segmentation fault (core dumped)", Some("Segmentation fault (core dumped)")),
        ] {
            let expected = expected.map(|text| LastWords { text: text.to_owned(), certain: false });
            assert_eq!(last_words(output), expected, "{output}");
        }
        let long = format!("error {}", "x".repeat(100_000));
        assert_eq!(last_words(&long).map(|words| words.text.chars().count()), Some(LONGEST + 1));
    }

    #[test]
    fn what_a_server_has_outlived_is_not_what_it_died_of() {
        let panic = "thread 'w' panicked at src/a.rs:10:5:\nno name\nnote: run with `RUST_BACKTRACE=1`\n";
        let healthy = "INFO served a frame\n".repeat(20);
        let fatal = "FATAL: the table of messages is full\n";
        let full = Some(LastWords { text: fatal.trim().to_owned(), certain: false });
        assert_eq!(last_words(&format!("{panic}{healthy}{fatal}")), full);
        assert_eq!(last_words(&format!("{panic}served\n")).filter(|words| words.certain), None);
        // Whoever notices the end may say so.
        let noticed = |times| last_words(&format!("{panic}{}", "error: a worker has died\n".repeat(times)));
        assert!(noticed(2).is_some_and(|words| words.certain && words.text.starts_with("panicked at ")));
        assert!(noticed(3).is_some_and(|words| !words.certain));
        // The last panic is told, whatever came before, its message of many lines.
        let last = "thread 'main' panicked at src/b.rs:1:2:\nassertion failed\n  left: 1\nright: 2\nnote: run with x\n";
        let words = last_words(&format!("{panic}{healthy}{fatal}{last}")).expect("words");
        assert!(words.certain && words.text.starts_with("panicked at src/b.rs:1:2: assertion"), "{words:?}");

        // On two streams it is not known which line was the first: some lines make no difference.
        let beside = |more: &str| {
            let panic = panic.lines().map(|line| (true, line));
            let lines: Vec<(bool, &str)> = panic.chain(more.lines().map(|line| (false, line))).collect();
            last_error(&lines)
        };
        assert_eq!(beside(&format!("{healthy}{fatal}")), full);
        assert_eq!(beside(fatal), full);
        assert!(beside("INFO served a frame\nbye").is_some_and(|words| words.certain));
        assert!(beside(&"bye\n".repeat(50)).is_some_and(|words| words.certain));

        // `logger.exception` for each bad frame.
        let trace = "Traceback (most recent call last):\n  File \"/srv/app.py\", line 2, in f\n    raise ValueError(1)\nValueError: 1\n";
        let logged = format!("ERROR:root:bad frame 7\n{trace}");
        let bad = Some(LastWords { text: "ERROR:root:bad frame 7".to_owned(), certain: false });
        assert_eq!(last_words(&logged.repeat(3)), bad);
        assert_eq!(last_words(&format!("{logged}INFO:root:served")), bad);
        let linked = "\nDuring handling of the above exception, another exception occurred:\n\n";
        assert_eq!(last_words(&format!("{logged}{linked}{trace}")), bad);
        for before in [String::new(), "INFO:root:served\n".to_owned(), format!("{trace}{linked}")] {
            let words = last_words(&format!("{before}{trace}")).expect("words");
            assert!(words.certain && words.text == "ValueError: 1 (at /srv/app.py:2)", "{before} {words:?}");
        }
    }
}
