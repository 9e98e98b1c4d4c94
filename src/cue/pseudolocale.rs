//! Pseudo-localization of what the model says: the server is shown other letters than the case has, and whoever judges what the server
//! sends is shown the case's letters again. A server for which texts are opaque cannot tell; one that cuts them between bytes, trims
//! them, takes blank ones for none or has no room for long ones changes what is judged.
//!
//! A letter becomes a letter, so it does not matter how a server cuts texts into pieces or joins them.

use std::borrow::Cow;
use std::iter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CLOSE, Cue, OPEN, RESULTS, Step, USER_TEXT};
use crate::text::json_escape;

/// What is put between the letters of a long text. ASCII, so that nothing but the length is unusual; not a character of any id.
const FILLER: char = '`';
/// Characters that a long text has at least, all pieces of what is said at a time together.
const LONG: usize = 3_000;
/// Characters of a client's text that are shown as others.
const BEGINNING: usize = 1_000;
/// A text of more characters is there for its length, and stays: it must not become a message that is too long.
const HUGE: usize = 100_000;

/// What the letters of texts become. Characters of one byte become some of two, three and four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Alphabet {
    /// Letters outside ASCII.
    NonAscii,
    /// White space in place of some letters: lines, tabs, no-break spaces, also at both ends of a text and as the whole text.
    Blank,
    /// The letters themselves, so many characters apart that every text has 3,000 and more.
    Long,
}

/// How the texts of a cue are shown to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pseudolocale {
    /// What letters become.
    pub alphabet: Alphabet,
    /// Arguments of calls, by name (`*`: all), whose texts stay as they are: names of files, programs.
    #[serde(default)]
    pub except: Vec<String>,
    /// JSON Pointers into messages of clients, to texts that mean nothing to the server, which are shown to it in other letters, too: ids that
    /// clients choose, what users say.
    #[serde(default)]
    pub fields: Vec<String>,
}

const NON_ASCII: [(char, char); 52] = [
    ('a', 'ạ'),
    ('b', 'β'),
    ('c', 'ç'),
    ('d', 'đ'),
    ('e', '𝑒'),
    ('f', 'ƒ'),
    ('g', 'ğ'),
    ('h', 'ħ'),
    ('i', 'ï'),
    ('j', 'ĵ'),
    ('k', 'ķ'),
    ('l', 'ł'),
    ('m', 'ɱ'),
    ('n', 'ŋ'),
    ('o', '𝘰'),
    ('p', 'þ'),
    ('q', 'ɋ'),
    ('r', 'ř'),
    ('s', '字'),
    ('t', 'ŧ'),
    ('u', 'ų'),
    ('v', 'ṽ'),
    ('w', 'ŵ'),
    ('x', 'ẋ'),
    ('y', 'ŷ'),
    ('z', 'ž'),
    ('A', 'Å'),
    ('B', 'Β'),
    ('C', 'Ç'),
    ('D', 'Đ'),
    ('E', '𝐄'),
    ('F', 'Ƒ'),
    ('G', 'Ğ'),
    ('H', 'Ħ'),
    ('I', 'Ï'),
    ('J', 'Ĵ'),
    ('K', 'Ķ'),
    ('L', 'Ł'),
    ('M', 'Ḿ'),
    ('N', 'Ŋ'),
    ('O', '𝐎'),
    ('P', 'Þ'),
    ('Q', 'Ɋ'),
    ('R', 'Ř'),
    ('S', 'Š'),
    ('T', 'Ŧ'),
    ('U', 'Ų'),
    ('V', 'Ṽ'),
    ('W', 'Ŵ'),
    ('X', 'Ẋ'),
    ('Y', 'Ŷ'),
    ('Z', 'Ž'),
];

/// The letters with which English words often begin and end.
const BLANK: [(char, char); 10] = [
    ('e', '\n'),
    ('t', '\t'),
    ('o', '\u{2003}'),
    ('s', '\u{a0}'),
    ('d', '\u{2028}'),
    ('h', '\u{3000}'),
    ('n', '\u{2009}'),
    ('w', '\u{205f}'),
    ('r', '\u{1680}'),
    ('a', '\u{202f}'),
];

impl Pseudolocale {
    fn letters(&self) -> &'static [(char, char)] {
        match self.alphabet {
            Alphabet::NonAscii => &NON_ASCII,
            Alphabet::Blank => &BLANK,
            Alphabet::Long => &[],
        }
    }

    /// Whether a text has a character that would be taken for another one on its way back.
    pub(crate) fn is_used_in(&self, text: &str) -> bool {
        let filler = (self.alphabet == Alphabet::Long).then_some(FILLER);
        text.chars().any(|one| Some(one) == filler || self.letters().iter().any(|(_, other)| *other == one))
    }

    /// A frame as it is shown to the server: with other texts in its cues.
    pub(crate) fn apply(&self, frame: &str) -> String {
        around_cues(frame, str::to_owned, |cue| with_steps(cue, |step| self.disguise(step)))
    }

    /// A client's message as it is shown to the server.
    pub(crate) fn apply_to_message(&self, message: &Value) -> Value {
        let mut shown = message.clone();
        for field in &self.fields {
            if let Some(Value::String(text)) = shown.pointer_mut(field) {
                let letters = text.chars().count();
                *text = around_cues(text, |part| self.other_beginning(part, letters), str::to_owned);
            }
        }
        // A cue has no character that JSON escapes.
        serde_json::from_str(&self.apply(&shown.to_string())).unwrap_or(shown)
    }

    /// A frame of the server as it is judged.
    pub(crate) fn revert(&self, frame: &str) -> String {
        let frame = self.letters_again(frame);
        around_cues(&frame, str::to_owned, |cue| with_steps(cue, |step| self.reveal(step)))
    }

    fn disguise(&self, step: &mut Step) {
        let texts = texts(step, &self.except);
        let letters: usize = texts.iter().map(|text| text.chars().count()).sum();
        if letters > HUGE {
            return;
        }
        for text in texts {
            *text = outside_blanks(text, |part| self.other_text(part, letters));
        }
    }

    /// What a client says, in other letters. Of a long text only the beginning: it must not become a message that is too long.
    fn other_beginning(&self, text: &str, letters: usize) -> String {
        let end = text.char_indices().nth(BEGINNING).map_or(text.len(), |(at, _)| at);
        let (beginning, rest) = text.split_at(end);
        self.other_text(beginning, letters) + rest
    }

    /// A text of so many letters, or a part of it, in other letters.
    fn other_text(&self, text: &str, letters: usize) -> String {
        if self.alphabet != Alphabet::Long {
            return text.chars().map(|one| other(self.letters(), one)).collect();
        }
        let apart = LONG / letters.max(1);
        text.chars().flat_map(|one| iter::once(one).chain(iter::repeat_n(FILLER, apart))).collect()
    }

    fn reveal(&self, step: &mut Step) {
        for text in texts(step, &self.except) {
            *text = text.chars().filter_map(|one| self.letter(one)).collect();
        }
    }

    /// The letter that a character stands for; none: it is only there to make the text long.
    fn letter(&self, one: char) -> Option<char> {
        if self.alphabet == Alphabet::Long && one == FILLER {
            return None;
        }
        Some(self.letters().iter().find(|(_, other)| *other == one).map_or(one, |(letter, _)| *letter))
    }

    /// JSON with letters in its strings in place of what stands for them, written as such or escaped; in a string that is JSON
    /// itself, also escaped twice.
    fn letters_again<'f>(&self, json: &'f str) -> Cow<'f, str> {
        if json.is_ascii() && !json.contains([FILLER, '\\']) {
            return Cow::Borrowed(json);
        }
        let mut letters = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(at) = rest.find('"') {
            let (before, string) = rest.split_at(at + 1);
            letters += before;
            let end = string_end(string);
            let nested = behind_blanks(string).starts_with(['{', '[']);
            self.string_again(&string[..end], nested, &mut letters);
            rest = &string[end..];
            if let Some(behind) = rest.strip_prefix('"') {
                letters.push('"');
                rest = behind;
            }
        }
        letters += rest;
        Cow::Owned(letters)
    }

    /// The inside of a JSON string.
    fn string_again(&self, mut string: &str, nested: bool, out: &mut String) {
        // What no letter is written with is copied at once.
        let is_copied = |one: char| one.is_ascii() && one != '\\' && one != FILLER;
        while !string.is_empty() {
            let copied = string.find(|one| !is_copied(one)).unwrap_or(string.len());
            out.push_str(&string[..copied]);
            string = &string[copied..];
            let Some(first) = string.chars().next() else { break };
            let slash = if nested && string.starts_with(r"\\") { r"\\" } else { r"\" };
            let (length, one) = match json_escape(string.as_bytes(), slash.as_bytes()) {
                Some(escape) => escape,
                // A backslash alone, where the text only looks like JSON.
                None if first == '\\' => (slash.len(), first),
                None => (first.len_utf8(), first),
            };
            let (written, behind) = string.split_at(length.min(string.len()));
            match self.letter(one) {
                Some(letter) if letter != one => out.push(letter),
                Some(_) => out.push_str(written),
                None => {}
            }
            string = behind;
        }
    }
}

/// The inside of a JSON string without the white space at its beginning, written as such or escaped.
fn behind_blanks(mut string: &str) -> &str {
    while let Some(rest) = [" ", r"\n", r"\t", r"\r"].iter().find_map(|blank| string.strip_prefix(blank)) {
        string = rest;
    }
    string
}

/// A text whose cues, and what is around them, are others.
fn around_cues(text: &str, around: impl Fn(&str) -> String, cue: impl Fn(&str) -> String) -> String {
    let mut changed = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(OPEN)
        && let Some(length) = rest[start..].find(CLOSE)
    {
        let end = start + length + CLOSE.len();
        changed += &around(&rest[..start]);
        changed += &cue(&rest[start..end]);
        rest = &rest[end..];
    }
    changed + &around(rest)
}

/// A cue with other steps. What only looks like a cue stays.
fn with_steps(text: &str, change: impl Fn(&mut Step)) -> String {
    let Ok(Some(mut cue)) = Cue::find(text) else { return text.to_owned() };
    cue.turn.iter_mut().for_each(change);
    cue.encode()
}

/// The texts of a step that a server hands on.
fn texts<'s>(step: &'s mut Step, except: &[String]) -> Vec<&'s mut String> {
    match step {
        Step::Say { say: texts, .. } | Step::Think { think: texts, .. } => texts.iter_mut().collect(),
        Step::Call { call } => {
            let named = |name: &str| except.iter().any(|one| one == "*" || one == name);
            let arguments = call.args.iter_mut().filter(|(name, _)| !named(name));
            arguments
                .filter_map(|(_, value)| if let Value::String(text) = value { Some(text) } else { None })
                .collect()
        }
        Step::Fail { fail } => vec![&mut fail.message],
        Step::Pause { .. } | Step::Hang { .. } => Vec::new(),
    }
}

fn other(letters: &[(char, char)], one: char) -> char {
    letters.iter().find(|(letter, _)| *letter == one).map_or(one, |(_, other)| *other)
}

/// A text that is changed but for the places in which the model puts what tools returned and what the user said.
fn outside_blanks(text: &str, change: impl Fn(&str) -> String) -> String {
    let parts = text
        .split(RESULTS)
        .map(|part| part.split(USER_TEXT).map(&change).collect::<Vec<_>>().join(USER_TEXT));
    parts.collect::<Vec<_>>().join(RESULTS)
}

/// Where the string ends whose first quotation mark is left of this.
fn string_end(string: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in string.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    string.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ALPHABETS: [Alphabet; 3] = [Alphabet::NonAscii, Alphabet::Blank, Alphabet::Long];

    fn locale(alphabet: Alphabet) -> Pseudolocale {
        Pseudolocale { alphabet, except: vec!["key".to_owned()], fields: vec!["/a/id".to_owned()] }
    }

    fn cue(turn: Value) -> String {
        Cue::new(serde_json::from_value(turn).expect("steps")).encode()
    }

    /// What the server reads.
    fn shown(alphabet: Alphabet, turn: Value) -> Value {
        let frame = json!({ "text": format!("Please. {}", cue(turn)) }).to_string();
        let cue = Cue::find(&locale(alphabet).apply(&frame)).expect("a cue").expect("one");
        json!(cue.turn)
    }

    #[test]
    fn texts_that_a_server_hands_on_are_others() {
        let turn = json!([
            { "say": ["Hel", "lo <<results>>"] },
            { "call": { "name": "write_note", "args": { "key": "note", "text": "done", "count": 1 } } },
            { "fail": { "status": 500, "message": "no" } },
        ]);
        let expected = json!([
            { "say": ["Ħ𝑒ł", "ł𝘰 <<results>>"] },
            { "call": { "name": "write_note", "args": { "key": "note", "text": "đ𝘰ŋ𝑒", "count": 1 } } },
            { "fail": { "status": 500, "message": "ŋ𝘰" } },
        ]);
        assert_eq!(shown(Alphabet::NonAscii, turn), expected);
        let blank = json!([{ "say": ["\u{2028}\u{2003}\u{2009}\n"] }]);
        assert_eq!(shown(Alphabet::Blank, json!([{ "say": ["done"] }])), blank, "all of it is white space");
        let long =
            shown(Alphabet::Long, json!([{ "say": ["a", "bc"] }, { "think": ["x".repeat(LONG + 1)] }]));
        assert_eq!(long[0]["say"][1].as_str().map(|text| text.matches(FILLER).count()), Some(2 * LONG / 3));
        assert_eq!(long[1]["think"][0].as_str().map(str::len), Some(LONG + 1), "it is long already");
    }

    #[test]
    fn letters_come_back_however_they_are_written() {
        let locale = locale(Alphabet::NonAscii);
        let cases = [
            (r#"{"a":"Ħ𝑒łł𝘰"}"#, r#"{"a":"Hello"}"#),
            (r#"{"a":"\u0126\ud835\udc52\u0142\\"}"#, r#"{"a":"Hel\\"}"#),
            (r#"{"a":"{\"b\":\"\\u0126i\"}"}"#, r#"{"a":"{\"b\":\"Hi\"}"}"#),
            (r#"{"a":" \n{\"b\":\"\\u0126i\"}"}"#, r#"{"a":" \n{\"b\":\"Hi\"}"}"#),
            (r#"{"a":"\\u0126i"}"#, r#"{"a":"\\u0126i"}"#),
            (r#"{"a":"\\\u0126","#, r#"{"a":"\\H","#),
            (r#"{"a":"\ud835\uXY"#, r#"{"a":"\ud835\uXY"#),
        ];
        for (sent, judged) in cases {
            assert_eq!(locale.revert(sent), judged);
        }
        let long = Pseudolocale { alphabet: Alphabet::Long, except: Vec::new(), fields: Vec::new() };
        assert_eq!(long.revert(r#"{"a":"[`1`]`\\`"}"#), r#"{"a":"[1]\\"}"#);
        let blank = Pseudolocale { alphabet: Alphabet::Blank, except: Vec::new(), fields: Vec::new() };
        assert_eq!(
            blank.revert("{\n \"a\":\"\\n\\\\n\\t\"}"),
            "{\n \"a\":\"e\\\\nt\"}",
            "outside strings it is white space"
        );
        assert_eq!(blank.revert(r#"{"a":"[\\\n"}"#), r#"{"a":"[\\e"}"#, "what only looks like JSON in JSON");
    }

    #[test]
    fn ids_and_words_of_clients_are_others_too() {
        let cue = cue(json!([{ "hang": true }]));
        let message = json!({ "id": "one", "a": { "id": format!("one {cue} one") } });
        let expected = json!({ "id": "one", "a": { "id": format!("𝘰ŋ𝑒 {cue} 𝘰ŋ𝑒") } });
        let locale = locale(Alphabet::NonAscii);
        assert_eq!(locale.apply_to_message(&message), expected);
        assert_eq!(locale.revert(&expected.to_string()), message.to_string());
    }

    proptest! {
        /// What comes back is what was sent, whatever is around it.
        #[test]
        fn what_is_handed_on_comes_back(text in "[ -_a-~]{0,60}", around in any::<String>(), which in 0_usize..3) {
            let locale = locale(ALPHABETS[which]);
            prop_assume!(!locale.is_used_in(&around));
            let frame = json!({ "text": around, "cue": cue(json!([{ "say": [text] }])) }).to_string();
            let shown = locale.apply(&frame);
            prop_assert_eq!(locale.revert(&shown), frame.as_str());
        }

        /// No frame of a server is too strange.
        #[test]
        fn any_frame_is_taken(frame in any::<String>(), which in 0_usize..3) {
            let locale = locale(ALPHABETS[which]);
            let once = locale.revert(&frame);
            prop_assert!(once.len() <= frame.len() + 1_000);
        }
    }
}
