//! From a case's turn to the user's text that carries it.

use serde_json::Value;

use super::file::TurnStep;
use super::template::{TemplateError, expand};
use crate::cue::{Call, Cue, Fail, Step};
use crate::protocol::Protocol;

/// The user's text: a few words for people, and the cue.
///
/// # Errors
/// A template in a tool call that cannot be filled in.
pub fn cue_text(
    steps: &[TurnStep],
    protocol: &Protocol,
    lookup: &mut dyn FnMut(&str) -> Option<Value>,
) -> Result<String, TemplateError> {
    let mut cue = Vec::new();
    let mut words = Vec::new();
    for step in steps {
        cue.push(compile(step, protocol, lookup, &mut words)?);
    }
    Ok(format!("Please {}. {}", words.join(", then "), Cue::new(cue).encode()))
}

fn compile(
    step: &TurnStep,
    protocol: &Protocol,
    lookup: &mut dyn FnMut(&str) -> Option<Value>,
    words: &mut Vec<String>,
) -> Result<Step, TemplateError> {
    if let Some(say) = &step.say {
        words.push("say something".to_owned());
        return Ok(Step::Say { say: say.clone(), every_ms: step.every_ms });
    }
    if let Some(think) = &step.think {
        words.push("think".to_owned());
        return Ok(Step::Think { think: think.clone(), every_ms: step.every_ms });
    }
    if let Some(pause_ms) = step.pause_ms {
        words.push("wait".to_owned());
        return Ok(Step::Pause { pause_ms });
    }
    if let Some(fail) = &step.fail {
        words.push("fail".to_owned());
        let (status, message) = (fail.status, fail.message.clone());
        return Ok(Step::Fail { fail: Fail { status, message, ..Fail::default() } });
    }
    if let Some(flood) = &step.flood {
        words.push("say very much".to_owned());
        let chunk = "x".repeat(flood.chars as usize);
        return Ok(Step::Say { say: vec![chunk; flood.chunks as usize], every_ms: step.every_ms });
    }
    if let Some(call) = &step.call {
        let call = expand(call, lookup)?;
        let class = call["class"].as_str().and_then(|class| protocol.extension.tools.get(class));
        let name = call["name"].as_str().map(str::to_owned);
        let name = name.or(class.map(|tool| tool.name.clone())).unwrap_or_default();
        let own = class.is_some_and(|tool| tool.of_target);
        let args = call["args"].as_object().filter(|_| !own).cloned();
        let args = args.or(class.map(|tool| tool.args.clone())).unwrap_or_default();
        words.push(format!("call {name}"));
        return Ok(Step::Call { call: Call { name, args } });
    }
    words.push("hang".to_owned());
    Ok(Step::Hang { hang: true })
}
