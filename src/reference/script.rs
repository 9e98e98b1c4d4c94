//! What the model does in a turn: the cue of the user's text, cut into model responses.

use crate::cue::{Cue, Step};

/// One model response: steps, ending with the tool calls that stand next to each other.
pub(super) type Response = Vec<Step>;

/// The model responses that a text asks for. No cue: the reply `ok`. A bad cue: its error as a reply.
pub(super) fn responses(text: &str) -> Vec<Response> {
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
    use super::*;
    use crate::cue::Call;

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
