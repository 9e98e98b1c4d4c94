//! Text that nobody obeys, neither a terminal nor a reader nor a runner of CI, whoever wrote it: for what is shown, and for files that
//! people open.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// Characters that change how a terminal or a reader shows what follows, or that nobody sees: controls, the bidirectional and
/// invisible formatting characters (Unicode's Default_Ignorable_Code_Point but for U+FE00 to U+FE0F, which choose the look of the
/// character before them), and what is no character.
fn is_unsafe(c: char) -> bool {
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

/// Whether the character at this place of a text is shown as an escape.
fn is_spelt_out(text: &str, at: usize, c: char) -> bool {
    is_unsafe(c) || (matches!(c, '#' | ':') && is_command(text, at))
}

/// What is said of a text by which it must be rewritten.
fn is_harmless(text: &str, kept: fn(char) -> bool) -> bool {
    let marks = |pair: &[u8]| pair == b"##" || pair == b"::";
    let commands = || {
        let pairs = text.as_bytes().windows(2).enumerate();
        pairs.filter(|(_, pair)| marks(pair)).any(|(at, _)| is_command(text, at))
    };
    !text.contains(|c| is_unsafe(c) && !kept(c)) && !commands()
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
            c if is_spelt_out(text, at, c) => {
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

/// As [`lines`], with a mark of as many bytes in the place of each treacherous character: places in the text keep their meaning.
pub fn aligned(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let ends_line = c == '\n' || text[at..].starts_with("\r\n");
        match c.len_utf8() {
            _ if ends_line || c == '\t' || !is_spelt_out(text, at, c) => out.push(c),
            1 => out.push('?'),
            2 => out.push('\u{b7}'),
            3 => out.push('\u{fffd}'),
            _ => out.push_str("\u{fffd}?"),
        }
    }
    out
}

/// For JSON that is already written, which may be shown as it stands: the same value, with what is treacherous written as an escape.
pub fn json(text: &str) -> Cow<'_, str> {
    if is_harmless(text, |_| false) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    // A vector takes all, and all of it is text.
    let _ = write_json(text, &mut out);
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

/// As [`json`], for what is written right away: of a long text nothing is copied.
///
/// # Errors
/// The writer's.
pub(crate) fn write_json(text: &str, out: &mut (impl io::Write + ?Sized)) -> io::Result<()> {
    let mut from = 0;
    for (at, c) in text.char_indices() {
        if is_spelt_out(text, at, c) {
            out.write_all(&text.as_bytes()[from..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}")?;
            }
            from = at + c.len_utf8();
        }
    }
    out.write_all(&text.as_bytes()[from..])
}

/// A text in double quotes as YAML takes it, in one line: the same value, with what is treacherous written as an escape.
pub(crate) fn yaml(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (at, c) in text.char_indices() {
        // Writing to a string does not fail.
        let _ = match c {
            '"' => out.write_str("\\\""),
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\t' => out.write_str("\\t"),
            c if !is_spelt_out(text, at, c) => out.write_char(c),
            c if (c as u32) < 0x1_0000 => write!(out, "\\u{:04x}", c as u32),
            c => write!(out, "\\U{:08x}", c as u32),
        };
    }
    out.push('"');
    out
}
