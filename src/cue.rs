//! The cue: the model's script, carried inside the user's text as `[[cue:BASE64URL]]`.
//!
//! The scenario side encodes it, the reference servers and the scripted model decode and play it.
//! See `docs/scenarios.md`.

pub mod pseudolocale;
pub(crate) mod words;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a cue begins with.
pub(crate) const OPEN: &str = "[[cue:";
/// What it ends with.
pub(crate) const CLOSE: &str = "]]";

/// What the model does in one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cue {
    /// Version of the format: 1.
    pub v: u32,
    /// The steps.
    pub turn: Vec<Step>,
}

/// One step of the script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Text, streamed in chunks.
    Say {
        /// The chunks.
        say: Vec<String>,
        /// Milliseconds between them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_ms: Option<u64>,
    },
    /// Reasoning, streamed in chunks.
    Think {
        /// The chunks.
        think: Vec<String>,
        /// Milliseconds between them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_ms: Option<u64>,
    },
    /// A tool call.
    Call {
        /// Name and arguments.
        call: Call,
    },
    /// A pause.
    Pause {
        /// Milliseconds.
        pause_ms: u64,
    },
    /// The provider answers with an HTTP error.
    Fail {
        /// Status and message.
        fail: Fail,
    },
    /// Nothing more until the turn is cancelled.
    Hang {
        /// Always true.
        hang: bool,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Map<String, Value>,
}

/// A provider's HTTP error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// HTTP status.
    pub status: u16,
    /// Message.
    pub message: String,
    /// What the scripted model's `retry-after` says, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// How many tries fail, for clients that number them; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// One model response: steps, ending with the tool calls that stand next to each other.
pub type Response = Vec<Step>;

/// Why a text's cue cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cue error: {0}")]
pub struct CueError(pub String);

impl Cue {
    /// A cue of the current version.
    pub fn new(turn: Vec<Step>) -> Self {
        Self { v: 1, turn }
    }

    /// The cue as it stands in a text: `[[cue:…]]`.
    pub fn encode(&self) -> String {
        // A cue is plain data with string keys, which always serialises.
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{OPEN}{}{CLOSE}", URL_SAFE_NO_PAD.encode(json))
    }

    /// The cue in `text`: `Ok(None)` where there is none.
    ///
    /// # Errors
    /// A cue that does not decode, or has an unknown version or step.
    pub fn find(text: &str) -> Result<Option<Self>, CueError> {
        let Some((_, rest)) = text.split_once(OPEN) else { return Ok(None) };
        let Some((payload, _)) = rest.split_once(CLOSE) else {
            return Err(CueError("no closing `]]`".into()));
        };
        let json = URL_SAFE_NO_PAD.decode(payload).map_err(|error| CueError(error.to_string()))?;
        let value: Value = serde_json::from_slice(&json).map_err(|error| CueError(error.to_string()))?;
        if value["v"] != 1 {
            return Err(CueError(format!("unknown version {}", value["v"])));
        }
        serde_json::from_value(value).map(Some).map_err(|_| CueError("unknown step".into()))
    }
}

/// What a turn says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// All of it.
    pub text: String,
    /// It comes to an end by itself.
    pub ends: bool,
    /// How much of the text, in bytes, comes before each call.
    calls: Vec<usize>,
}

impl Script {
    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(self.calls.as_slice())
    }

    /// Whether a call follows so much of the text.
    pub fn calls_at(&self, bytes: usize) -> bool {
        self.calls.contains(&bytes)
    }
}

/// What a prompt has the model say, where that is known beforehand: it has one cue, no try fails, and no text repeats what tools
/// return or what the user says.
pub(crate) fn script(prompt: &str) -> Option<Script> {
    let cue = Cue::find(prompt).ok()?.filter(|_| prompt.matches(OPEN).count() == 1)?;
    let mut script = Script { text: String::new(), ends: true, calls: Vec::new() };
    for step in cue.turn {
        match step {
            Step::Say { say, .. } => script.text.extend(say),
            Step::Hang { .. } => {
                script.ends = false;
                break;
            }
            Step::Fail { .. } => return None,
            Step::Call { .. } => script.calls.push(script.text.len()),
            Step::Think { .. } | Step::Pause { .. } => {}
        }
    }
    (blanks(&script.text) == (0, 0)).then_some(script)
}

/// What tools returned, and what the user said, in a text of the model.
const RESULTS: &str = "<<results>>";
const USER_TEXT: &str = "<<text>>";

/// How often a text of the model asks for what tools returned, and for what the user said.
pub(crate) fn blanks(chunk: &str) -> (usize, usize) {
    (chunk.matches(RESULTS).count(), chunk.matches(USER_TEXT).count())
}

/// A text of the model with what tools returned, and what the user said. What is put in is not looked through.
pub(crate) fn fill(chunk: &str, results: &str, said: &str) -> String {
    chunk.split(RESULTS).map(|part| part.replace(USER_TEXT, said)).collect::<Vec<_>>().join(results)
}

/// A text without its last cue, and without white space around it.
pub(crate) fn without(text: &str) -> String {
    let (before, rest) = text.rsplit_once(OPEN).unwrap_or((text, ""));
    let after = rest.split_once(CLOSE).map_or("", |(_, after)| after);
    [before, after].concat().trim().to_owned()
}

/// The model responses that a text asks for. No cue: the reply `ok`. A bad cue: its error as a reply.
pub fn responses(text: &str) -> Vec<Response> {
    let say = |text: String| vec![vec![Step::Say { say: vec![text], every_ms: None }]];
    let turn = match Cue::find(text) {
        Ok(Some(cue)) => cue.turn,
        Ok(None) => return say("ok".to_owned()),
        Err(error) => return say(error.to_string()),
    };
    let mut responses: Vec<Response> = vec![Vec::new()];
    let mut after_call = false;
    for step in turn {
        let is_call = matches!(step, Step::Call { .. });
        if after_call && !is_call {
            responses.push(Vec::new());
        }
        after_call = is_call;
        if let Some(last) = responses.last_mut() {
            last.push(step);
        }
    }
    responses
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_without_its_cue() {
        for (text, expected) in [
            ("hi ", "hi"),
            ("Привет [[cue:abc]]", "Привет"),
            ("a [[cue:b]] c", "a  c"),
            ("a [[cue:b", "a"),
            ("[[cue:a]] b [[cue:c]]", "[[cue:a]] b"),
        ] {
            assert_eq!(without(text), expected);
        }
    }

    #[test]
    fn what_is_put_into_a_text_is_not_looked_through() {
        let chunk = "<<text>>: <<results>>, <<results>>.";
        assert_eq!(blanks(chunk), (2, 1));
        assert_eq!(fill(chunk, "r<<text>>", "s<<results>>"), "s<<results>>: r<<text>>, r<<text>>.");
        assert_eq!((blanks("<<>>"), fill("<<>>", "r", "s").as_str()), ((0, 0), "<<>>"));
    }

    #[test]
    fn survives_the_way_there_and_back() {
        let cue = Cue::new(vec![
            Step::Say { say: vec!["Hel".into(), "ló".into()], every_ms: None },
            Step::Call { call: Call { name: "write_note".into(), args: Map::new() } },
            Step::Fail { fail: Fail { status: 500, message: "no".into(), ..Fail::default() } },
        ]);
        let text = format!("say hello {} please", cue.encode());
        assert_eq!(Cue::find(&text), Ok(Some(cue)));
        assert_eq!(Cue::find("hello"), Ok(None));
    }

    #[test]
    fn what_a_prompt_has_the_model_say() {
        let prompt = |turn: Value| {
            let turn = serde_json::from_value(turn).expect("steps");
            format!("please {} now", Cue::new(turn).encode())
        };
        let whole =
            json!([{ "say": ["a", "b"] }, { "call": { "name": "x" } }, { "think": ["t"] }, { "say": ["c"] }]);
        for (text, expected) in [
            (prompt(whole.clone()), Some(("abc", true))),
            (prompt(json!([{ "say": ["a"] }, { "hang": true }, { "say": ["b"] }])), Some(("a", false))),
            (prompt(json!([{ "say": ["a"] }, { "fail": { "status": 500, "message": "" } }])), None),
            (prompt(json!([{ "say": ["<<results>>"] }])), None),
            (prompt(whole.clone()) + &prompt(whole), None),
            ("hello".to_owned(), None),
            ("[[cue:%%]]".to_owned(), None),
        ] {
            let found = script(&text);
            assert_eq!(found.as_ref().map(|script| (&*script.text, script.ends)), expected, "{text}");
        }
    }

    #[test]
    fn names_what_is_wrong() {
        for (payload, reason) in [
            (r#"{"v":2,"turn":[]}"#, "cue error: unknown version 2"),
            (r#"{"v":1,"turn":[{"dance":1}]}"#, "cue error: unknown step"),
        ] {
            let text = format!("[[cue:{}]]", URL_SAFE_NO_PAD.encode(payload));
            assert_eq!(Cue::find(&text).expect_err(payload).to_string(), reason);
        }
        assert!(Cue::find("[[cue:%%]]").is_err());
        assert!(Cue::find("[[cue:abc").is_err());
    }

    #[test]
    fn a_response_ends_after_its_calls() {
        let call = |name: &str| Step::Call { call: Call { name: name.into(), args: serde_json::Map::new() } };
        let say = |text: &str| Step::Say { say: vec![text.into()], every_ms: None };
        let cue = Cue::new(vec![say("a"), call("x"), call("y"), say("b"), call("z")]);
        let lengths: Vec<usize> = responses(&cue.encode()).iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 2]);
        assert_eq!(responses("hello"), vec![vec![say("ok")]]);
        assert!(
            matches!(&responses("[[cue:x]]")[0][0], Step::Say { say, .. } if say[0].starts_with("cue error"))
        );
    }
}
