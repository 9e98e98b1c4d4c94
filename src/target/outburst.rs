//! What a server says in its output about a failure that it has survived: a panic of one task, an exception that nobody caught.

/// Longest text that is kept of one, in characters.
const LONGEST: usize = 200;
/// Lines behind the first in which the message of a traceback is looked for.
const BELOW: usize = 200;

/// The panics and exceptions in some lines of output, in their order, each with what it says.
pub(super) fn outbursts(lines: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let below = &lines[at + 1..lines.len().min(at + 1 + BELOW)];
        let text = if line.starts_with("thread '") && line.contains("' panicked at ") {
            // The message stands on a line of its own; before Rust 1.73, on the same.
            match line.ends_with(':') {
                true => format!("{line} {}", below.first().copied().unwrap_or_default()),
                false => (*line).to_owned(),
            }
        } else if line.contains("panic serving ") || line.starts_with("Exception in thread ") {
            (*line).to_owned()
        } else if line.starts_with("Traceback (most recent call last)") {
            let message =
                below.iter().find(|line| !line.is_empty() && !line.starts_with(char::is_whitespace));
            let Some(message) = message else { continue };
            (*message).to_owned()
        } else if line.contains("UnhandledPromiseRejection") || line.starts_with("Uncaught ") {
            (*line).to_owned()
        } else {
            continue;
        };
        let is_long = text.chars().count() > LONGEST;
        let mut text: String = text.trim().chars().take(LONGEST).collect();
        if is_long {
            text.push('\u{2026}');
        }
        found.push(text);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_exceptions_are_found_and_other_errors_are_not() {
        let output = "listening\nthread 'tokio-runtime-worker' panicked at src/a.rs:3:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`\n\
                      ERROR bad request\nTraceback (most recent call last):\n  File \"a.py\", line 1\n    x\nKeyError: 'x'\n\
                      http: panic serving 127.0.0.1:1: oops\ngoroutine 1\n";
        let lines: Vec<&str> = output.lines().collect();
        let expected = [
            "thread 'tokio-runtime-worker' panicked at src/a.rs:3:5: index out of bounds",
            "KeyError: 'x'",
            "http: panic serving 127.0.0.1:1: oops",
        ];
        assert_eq!(outbursts(&lines), expected);
    }
}
