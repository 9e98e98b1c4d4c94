//! Making text safe to show, whoever wrote it: a server, a scenario, a protocol file. Everything that is shown passes through here.

use std::borrow::Cow;
use std::io::Write;

/// Characters that change how a terminal or a reader shows what follows, or that nobody sees: controls, the bidirectional and
/// invisible formatting characters (Unicode's Default_Ignorable_Code_Point but for U+FE00 to U+FE0F, which choose the look of the
/// character before them), and what is no character.
fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether runners of CI take what begins here for a command of a job's: GitHub's `##[…]` and Azure's `##vso[…]` anywhere in a
/// line, GitHub's `::name` where only white space is before it. A line may be broken before any word.
fn is_command(text: &str, at: usize) -> bool {
    let rest = &text.as_bytes()[at..];
    if rest.starts_with(b"##") {
        return rest.get(2) == Some(&b'[')
            || rest.get(2..6).is_some_and(|word| word.eq_ignore_ascii_case(b"vso["));
    }
    let begins = text[..at].chars().next_back().is_none_or(char::is_whitespace);
    begins && rest.starts_with(b"::") && rest.get(2).is_some_and(u8::is_ascii_alphabetic)
}

/// What is said of a text by which it must be rewritten.
fn is_harmless(text: &str, kept: fn(char) -> bool) -> bool {
    let marks = |pair: &[u8]| pair == b"##" || pair == b"::";
    let commands = || {
        let pairs = text.as_bytes().windows(2).enumerate();
        pairs.filter(|(_, pair)| marks(pair)).any(|(at, _)| is_command(text, at))
    };
    !text.contains(|c| is_treacherous(c) && !kept(c)) && !commands()
}

fn escaped(text: &str, kept: fn(char) -> bool) -> Cow<'_, str> {
    if is_harmless(text, kept) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            c if kept(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_treacherous(c) || (matches!(c, '#' | ':') && is_command(text, at)) => {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// For a terminal: one line, with every treacherous character made visible, and nothing that a runner of CI obeys.
pub fn terminal(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// As [`terminal`], for text of several lines: line ends and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

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

/// For JSON that is already written, which may be shown as it stands: the same value, with what is treacherous written as an escape.
pub fn json(text: &str) -> Cow<'_, str> {
    if is_harmless(text, |_| false) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if is_treacherous(c) || (matches!(c, '#' | ':') && is_command(text, at)) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
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
