//! Making text safe to show, whoever wrote it: a server, a scenario, a protocol file. Everything that is shown passes through here.

use std::borrow::Cow;
use std::io::Write;

pub use crate::text::safe::{json, lines, terminal};

/// As [`lines`], for text that has styles of our own in it: their sequences stay, whatever else is in it.
pub fn styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let parameters =
            rest[at + 2..].bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
        let end = at + 2 + parameters;
        let whole = rest[end..].starts_with('m');
        out.push_str(&lines(&rest[..at]));
        out.push_str(if whole { &rest[at..=end] } else { "\\u{1b}[" });
        rest = &rest[if whole { end + 1 } else { at + 2 }..];
    }
    out.push_str(&lines(rest));
    out
}

/// For XML 1.0: as [`lines`], which leaves no character that an XML document may not hold.
pub fn xml(text: &str) -> Cow<'_, str> {
    lines(text)
}

/// Where plain text is shown: each line is made safe on its way, so that nobody can forget to.
pub struct Safe<W: Write> {
    out: W,
    /// A line that has no end yet.
    line: Vec<u8>,
}

impl<W: Write> Safe<W> {
    /// Shows it there.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    fn show(&mut self, end: usize) -> std::io::Result<()> {
        let rest = self.line.split_off(end);
        let line = std::mem::replace(&mut self.line, rest);
        self.out.write_all(lines(&String::from_utf8_lossy(&line)).as_bytes())
    }
}

impl<W: Write> Write for Safe<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            self.show(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.show(self.line.len())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Safe<W> {
    fn drop(&mut self) {
        // Whoever wants to know whether all was written flushes before.
        let _ = self.flush();
    }
}

/// A word as a shell takes it.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_the_invisible_visible() {
        assert_eq!(terminal("a\u{1b}[31mb\u{202e}c\n"), "a\\u{1b}[31mb\\u{202e}c\\n");
        assert_eq!(terminal("a\u{61c}b\u{ad}c\u{fffe}d"), "a\\u{61c}b\\u{ad}c\\u{fffe}d");
        assert_eq!(xml("a\u{0}b\u{fffe}\n<&\u{2066}"), "a\\u{0}b\\u{fffe}\n<&\\u{2066}");
        assert!(matches!(terminal("Привет"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_is_the_same_value_and_can_be_shown() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{9b}[2J ##[error]x ::error::y", "\u{e0041}é", 1] });
        let text = value.to_string();
        let shown = json(&text);
        assert_eq!(lines(&shown), *shown);
        assert!(
            shown.contains(r"\u202e") && shown.contains(r"\udb40\udc41") && shown.contains(r"\u0023#["),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn no_runner_takes_text_for_a_command() {
        for (text, shown) in [
            ("x ##[error]y", "x \\u{23}#[error]y"),
            ("x##VSO[task.setvariable]y", "x\\u{23}#VSO[task.setvariable]y"),
            ("  ::set-output name=x::y", "  \\u{3a}:set-output name=x::y"),
            ("said ::error::y", "said \\u{3a}:error::y"),
            ("a::b ## [c] ::", "a::b ## [c] ::"),
        ] {
            assert_eq!(lines(text), shown);
        }
    }

    #[test]
    fn of_styled_text_only_the_styles_stay() {
        assert_eq!(
            styled("\u{1b}[1;31merror\u{1b}[0m: \u{1b}]8;;x\u{7}\u{1b}[2J\n"),
            "\u{1b}[1;31merror\u{1b}[0m: \\u{1b}]8;;x\\u{7}\\u{1b}[2J\n"
        );
    }

    #[test]
    fn what_is_written_in_pieces_is_safe_in_one() {
        let mut shown = Vec::new();
        let mut out = Safe::new(&mut shown);
        write!(out, "a #").and_then(|()| writeln!(out, "#[group]\u{9b}")).expect("written");
        write!(out, "rest\u{202e}").expect("written");
        drop(out);
        assert_eq!(String::from_utf8_lossy(&shown), "a \\u{23}#[group]\\u{9b}\nrest\\u{202e}");
    }
}
