//! What a process has said last about its own end: the line of its output that tells why, and where.

/// Longest text that is kept, in characters.
const LONGEST: usize = 240;
/// How the languages begin what they say of a fatal error; what comes behind the last one tells the end.
const SANITIZER: &str = "SUMMARY: ";
/// Words of a line that tells of an end, and of one that tells of any error, in small letters.
const ENDS: &[&str] = &[
    "panic",
    "fatal",
    "abort",
    "assert",
    "killed",
    "out of memory",
    "terminate called",
    "segmentation fault",
    "stack overflow",
    "uncaught",
    "unhandled",
];
const ERRORS: &[&str] = &["error", "exception", "fail", "corrupt"];

/// The last words in a process's last lines of output: a Rust or Go panic, the end of a Python traceback, a sanitizer's summary, an
/// exception of Node or Java, each with its place as `file:line`; else the last line that tells of an error. `None`: there is none.
pub(super) fn last_words(lines: &[&str]) -> Option<String> {
    let found = summary(lines)
        .or_else(|| rust(lines))
        .or_else(|| go(lines))
        .or_else(|| python(lines))
        .or_else(|| thrown(lines))
        .or_else(|| plain(lines))?;
    let text: String = found.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = text.chars().count() > LONGEST;
    let text: String = text.chars().take(LONGEST).collect();
    Some(if cut { text + "\u{2026}" } else { text }).filter(|text| !text.is_empty())
}

/// `SUMMARY: AddressSanitizer: heap-use-after-free src/frame.c:12:3 in parse`.
fn summary(lines: &[&str]) -> Option<String> {
    let line = lines.iter().rev().find_map(|line| line.trim_start().strip_prefix(SANITIZER))?;
    Some(line.to_owned())
}

/// `thread 'main' panicked at src/frame.rs:10:5:`, and the message in the next line.
fn rust(lines: &[&str]) -> Option<String> {
    let at = lines.iter().rposition(|line| line.contains("panicked at "))?;
    let (_, place) = lines[at].split_once("panicked at ")?;
    let message = lines.get(at + 1).filter(|_| place.ends_with(':')).copied().unwrap_or_default();
    Some(format!("panicked at {place} {message}"))
}

/// `panic: …` or `fatal error: …`, and the first place in the stack below that is not Go's own.
fn go(lines: &[&str]) -> Option<String> {
    let begins = |line: &&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    let at = lines.iter().rposition(begins)?;
    let own = |line: &&&str| line.starts_with('\t') && line.contains(".go:") && !line.contains("/runtime/");
    let place = lines[at..].iter().find(own).and_then(|line| line.split_whitespace().next());
    Some(with_place(lines[at], place))
}

/// The last line of a traceback, and the last file that it names.
fn python(lines: &[&str]) -> Option<String> {
    let at = lines.iter().rposition(|line| line.contains("Traceback (most recent call last)"))?;
    let is_frame = |line: &&&str| line.starts_with(' ') || line.trim().is_empty();
    let rest = &lines[at + 1..];
    let message = rest.iter().find(|line| !is_frame(line))?;
    let frame = rest.iter().take_while(is_frame).filter_map(|line| {
        let (file, rest) = line.trim().strip_prefix("File \"")?.split_once("\", line ")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("{file}:{number}"))
    });
    Some(with_place(message, frame.last().as_deref()))
}

/// `TypeError: …` of Node or `Exception in thread "main" …` of Java, and the first `at …` below.
fn thrown(lines: &[&str]) -> Option<String> {
    let is_frame =
        |line: &&str| line.trim_start().starts_with("at ") && line.starts_with(char::is_whitespace);
    let last = lines.iter().rposition(&is_frame)?;
    let first = lines[..=last].iter().rposition(|line| !is_frame(line))? + 1;
    let frame = lines.get(first)?.trim().trim_start_matches("at ");
    let place = frame.rsplit_once('(').map_or(frame, |(_, place)| place.trim_end_matches(')'));
    Some(with_place(lines[first - 1], Some(place)))
}

/// The last line that tells of an end; if there is none, of an error.
fn plain(lines: &[&str]) -> Option<String> {
    let last = |words: &[&str]| {
        let tells = |line: &&&str| {
            let line = line.to_lowercase();
            words.iter().any(|word| line.contains(word))
        };
        lines.iter().rev().find(tells).map(|line| (*line).to_owned())
    };
    last(ENDS).or_else(|| last(ERRORS))
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
                "thread 'main' panicked at 'old style', src/a.rs:1:2\nnote",
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
            ("one\nFATAL: no route\nerror: it is over", Some("FATAL: no route")),
            ("one error\nbye", Some("one error")),
            ("    at nowhere", None),
        ] {
            let lines: Vec<&str> = output.lines().collect();
            assert_eq!(last_words(&lines).as_deref(), expected, "{output}");
        }
        let long = format!("error {}", "x".repeat(100_000));
        assert_eq!(last_words(&[&long]).map(|text| text.chars().count()), Some(LONGEST + 1));
    }
}
