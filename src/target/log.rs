//! What launched processes write, line by line, with times.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::sync::watch;

use super::outburst::outbursts;
use crate::results::event::LogLine;

/// Lines that are kept; the oldest go first.
const MAX_LINES: usize = 20_000;
/// Bytes of all of them together; the oldest go first here, too.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of a line that are kept.
const MAX_LINE: usize = 4096;

/// A pause of the output after which something new has happened.
const PAUSE: Duration = Duration::from_millis(300);

/// The first and the last of some lines, and between them one that says how many are left out.
pub(crate) fn ends<T>(
    mut lines: Vec<T>,
    first: usize,
    last: usize,
    between: impl FnOnce(usize, &T) -> T,
) -> Vec<T> {
    let Some(count) = lines.len().checked_sub(first + last).filter(|count| *count > 1) else { return lines };
    let rest = lines.split_off(lines.len() - last);
    lines.truncate(first);
    if let Some(beside) = rest.first() {
        lines.push(between(count, beside));
    }
    lines.extend(rest);
    lines
}

/// What stands in the place of lines.
pub(crate) fn left_out(count: usize) -> String {
    format!("\u{2026} {count} lines left out \u{2026}")
}

/// A line of output.
#[derive(Debug, Clone)]
pub struct Line {
    /// When it was read.
    pub at: Instant,
    /// The process.
    pub process: Arc<str>,
    /// It was written to standard error.
    pub error: bool,
    /// The text, cut at a bound.
    pub text: String,
}

/// What a process wrote, as reports show it.
impl LogLine {
    /// Lines that belong to a case which began at `start`.
    pub(crate) fn of(lines: &[Line], start: Instant) -> Vec<Self> {
        let ms = |at: Instant| {
            let after = at.saturating_duration_since(start).as_secs_f64();
            (after - start.saturating_duration_since(at).as_secs_f64()) * 1e3
        };
        let line = |line: &Line| Self {
            ms: ms(line.at),
            process: line.process.to_string(),
            error: line.error,
            text: line.text.clone(),
        };
        lines.iter().map(line).collect()
    }

    /// Lines that belong to no case: their times count from the first of them.
    pub(crate) fn of_itself(lines: &[Line]) -> Vec<Self> {
        lines.first().map_or_else(Vec::new, |first| Self::of(lines, first.at))
    }
}

/// The output of a target's processes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Log {
    lines: Arc<Mutex<Kept>>,
    news: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<Line>,
    /// Lines that went before them.
    gone: u64,
    /// What they take in memory.
    bytes: usize,
}

impl Default for Log {
    fn default() -> Self {
        Self { lines: Arc::default(), news: watch::Sender::new(0) }
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: Line) {
        let mut kept = self.lock();
        let weight = |line: &Line| size_of::<Line>() + line.text.capacity();
        kept.bytes += weight(&line);
        kept.lines.push_back(line);
        while kept.lines.len() > MAX_LINES || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= weight(&oldest);
            kept.gone += 1;
        }
        drop(kept);
        self.news.send_modify(|count| *count += 1);
    }

    /// The lines that were read in a span of time.
    pub fn between(&self, from: Instant, to: Instant) -> Vec<Line> {
        self.lock().lines.iter().filter(|line| line.at >= from && line.at <= to).cloned().collect()
    }

    /// The last lines.
    pub fn tail(&self, count: usize) -> Vec<Line> {
        let kept = self.lock();
        kept.lines.iter().skip(kept.lines.len().saturating_sub(count)).cloned().collect()
    }

    /// The first and the last lines of what was written last: what a panic says itself stands above its backtrace, which may be long.
    /// It reaches back for as long as no pause was longer than 300 ms.
    pub fn incident(&self, first: usize, last: usize) -> Vec<Line> {
        let kept = self.lock();
        let lines = &kept.lines;
        let is_apart = |at: &usize| lines[*at].at.saturating_duration_since(lines[*at - 1].at) > PAUSE;
        let from = (1..lines.len()).rev().find(is_apart).unwrap_or(0);
        let lines: Vec<Line> = lines.iter().skip(from).cloned().collect();
        drop(kept);
        match lines.len() > first + last {
            true => {
                ends(lines, first, last, |count, beside| Line { text: left_out(count), ..beside.clone() })
            }
            false => self.tail(first + last),
        }
    }

    /// The panics and exceptions that processes have told of since this was asked with the same `seen`, which is moved on.
    pub fn outbursts(&self, seen: &mut u64) -> Vec<String> {
        let kept = self.lock();
        let from = usize::try_from(seen.saturating_sub(kept.gone)).unwrap_or(usize::MAX);
        *seen = kept.gone + kept.lines.len() as u64;
        let mut names: Vec<&Arc<str>> = kept.lines.iter().skip(from).map(|line| &line.process).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: &Arc<str>| {
            let lines = kept.lines.iter().skip(from).filter(|line| line.process == *name);
            outbursts(&lines.map(|line| line.text.as_str()).collect::<Vec<_>>())
        };
        names.into_iter().flat_map(of).collect()
    }

    /// The last lines of one process, written since `since`.
    pub(super) fn tail_of(&self, process: &str, since: Instant, count: usize) -> Vec<Line> {
        let kept = self.lock();
        let own = kept.lines.iter().rev().filter(|line| &*line.process == process && line.at >= since);
        let mut own: Vec<Line> = own.take(count).cloned().collect();
        own.reverse();
        own
    }

    /// Waits for a line of a process, written since `since`, for which `found` yields something.
    pub(super) async fn wait<T>(
        &self,
        process: &str,
        since: Instant,
        mut found: impl FnMut(&str) -> Option<T>,
    ) -> T {
        let mut news = self.news.subscribe();
        let mut seen = 0;
        loop {
            {
                let kept = self.lock();
                let from = usize::try_from(u64::saturating_sub(seen, kept.gone)).unwrap_or(usize::MAX);
                let new = kept.lines.iter().skip(from);
                let mut new = new.filter(|line| &*line.process == process && line.at >= since);
                if let Some(value) = new.find_map(|line| found(&line.text)) {
                    return value;
                }
                seen = kept.gone + kept.lines.len() as u64;
            }
            if news.changed().await.is_err() {
                // We hold a sender, so this does not happen; nothing would come any more.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Reads a stream to its end, line by line.
    pub(super) async fn follow(self, process: Arc<str>, error: bool, mut stream: impl AsyncBufRead + Unpin) {
        let mut line = Vec::new();
        let mut any = false;
        loop {
            let (used, ended) = match stream.fill_buf().await {
                Ok([]) | Err(_) => {
                    if any {
                        self.push(of(&process, error, &line));
                    }
                    return;
                }
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let text = &bytes[..end.unwrap_or(bytes.len())];
                    let room = MAX_LINE.saturating_sub(line.len());
                    line.extend_from_slice(&text[..text.len().min(room)]);
                    (end.map_or(bytes.len(), |end| end + 1), end.is_some())
                }
            };
            stream.consume(used);
            any = true;
            if ended {
                self.push(of(&process, error, &line));
                line.clear();
                any = false;
            }
        }
    }
}

fn of(process: &Arc<str>, error: bool, line: &[u8]) -> Line {
    let text = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
    Line { at: Instant::now(), process: Arc::clone(process), error, text }
}

/// Whether a line has the pattern's text; what its open variables stand for.
pub(super) fn capture(pattern: &str, line: &str) -> Option<Vec<(String, String)>> {
    let Some((before, rest)) = pattern.split_once("{{") else {
        return line.contains(pattern).then(Vec::new);
    };
    let (name, after) = rest.split_once("}}")?;
    let mut from = line;
    while let Some(at) = from.find(before) {
        let value = &from[at + before.len()..];
        // The value ends at a blank, or where the pattern goes on.
        let next: String = after.split("{{").next().unwrap_or_default().to_owned();
        let blank = value.find(char::is_whitespace).unwrap_or(value.len());
        let end = if next.is_empty() { Some(blank) } else { value.find(&next).filter(|end| *end <= blank) };
        if let Some(end) = end.filter(|end| *end > 0)
            && let Some(mut more) = capture(after, &value[end..])
        {
            more.insert(0, (name.trim().to_owned(), value[..end].to_owned()));
            return Some(more);
        }
        // An empty text before the variable is found everywhere: once is enough.
        if before.is_empty() {
            return None;
        }
        from = value;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_taken_from_lines() {
        let pairs = |list: &[(&str, &str)]| {
            Some(list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>())
        };
        for (pattern, line, expected) in [
            ("ready", "I am ready now", pairs(&[])),
            ("ready", "not yet", None),
            ("port {{port}}", "listening on port 8123 now", pairs(&[("port", "8123")])),
            ("ws://{{host}}:{{port}}/ws", "at ws://h:1/ws.", pairs(&[("host", "h"), ("port", "1")])),
            ("port {{port}}/", "port 8123 and /", None),
            ("{{all}}", "ws://x", pairs(&[("all", "ws://x")])),
            ("port {{port}}", "port ", None),
        ] {
            assert_eq!(capture(pattern, line), expected, "{pattern} in {line}");
        }
    }

    #[tokio::test]
    async fn what_a_panic_says_above_its_backtrace_is_kept() {
        let log = Log::default();
        let trace: String = (0..300).map(|frame| format!("  {frame}: frame\n")).collect();
        let text = format!("thread 'main' panicked at a.rs:1\n{trace}");
        log.clone().follow("p".into(), true, tokio::io::BufReader::new(text.as_bytes())).await;
        let lines: Vec<String> = log.incident(2, 3).into_iter().map(|line| line.text).collect();
        let expected = [
            "thread 'main' panicked at a.rs:1",
            "  0: frame",
            "\u{2026} 296 lines left out \u{2026}",
            "  297: frame",
            "  298: frame",
            "  299: frame",
        ];
        assert_eq!(lines, expected);
        assert_eq!(
            ends(vec![1, 2, 3, 4], 1, 2, |_, _| 0),
            [1, 2, 3, 4],
            "one line is as long as what stands for it"
        );
    }

    #[tokio::test]
    async fn long_lines_and_missing_line_ends_are_taken() {
        let log = Log::default();
        let text = format!("{}\none\r\nlast", "x".repeat(100_000));
        log.clone().follow("p".into(), false, tokio::io::BufReader::new(text.as_bytes())).await;
        let lines: Vec<String> = log.tail(9).into_iter().map(|line| line.text).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].len(), MAX_LINE);
        assert_eq!(lines[1..], ["one", "last"]);
    }
}
