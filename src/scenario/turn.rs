//! From a case's turn to the user's text that carries it.

use serde_json::Value;

use super::template::{TemplateError, expand, names};
use crate::cue::{Call, Cue, Fail, Step};
use crate::protocol::Protocol;
use crate::protocol::extension::TargetTool;
use crate::protocol::script::TurnStep;

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

/// The calls that the cue has, in order: what the server is asked for, whatever tools it has.
///
/// # Errors
/// A template in a tool call that cannot be filled in.
pub fn calls(
    steps: &[TurnStep],
    protocol: &Protocol,
    lookup: &mut dyn FnMut(&str) -> Option<Value>,
) -> Result<Vec<Call>, TemplateError> {
    steps.iter().filter_map(|step| step.call.as_ref()).map(|call| call_of(call, protocol, lookup)).collect()
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
        let call = call_of(call, protocol, lookup)?;
        words.push(format!("call {}", call.name));
        return Ok(Step::Call { call });
    }
    words.push("hang".to_owned());
    Ok(Step::Hang { hang: true })
}

fn call_of(
    call: &Value,
    protocol: &Protocol,
    lookup: &mut dyn FnMut(&str) -> Option<Value>,
) -> Result<Call, TemplateError> {
    let call = expand(call, lookup)?;
    let class = call["class"].as_str().and_then(|class| protocol.extension.tools.get(class));
    let name = call["name"].as_str().or(class.map(|tool| tool.name.as_str())).unwrap_or_default();
    let own = class.map(|tool| tool.args.clone()).unwrap_or_default();
    let given = call["args"].as_object();
    let args = match class.map(|tool| &tool.target) {
        Some(TargetTool::Mapped(template)) => {
            let parameter = |name: &str| given.and_then(|args| args.get(name)).or(own.get(name)).cloned();
            let mut lookup = |name: &str| parameter(name).or_else(|| lookup(name));
            let mapped = expand(&Value::Object(template.clone()), &mut lookup)?;
            mapped.as_object().cloned().unwrap_or_default()
        }
        _ => given.cloned().unwrap_or(own),
    };
    Ok(Call { name: name.to_owned(), args })
}

/// The classes of the tools that turns call, or name.
pub fn classes<'t>(turns: impl Iterator<Item = &'t TurnStep>) -> Vec<String> {
    let mut classes = Vec::new();
    for call in turns.filter_map(|step| step.call.as_ref()) {
        let named = names(call);
        let named = named.iter().filter_map(|name| name.strip_prefix("tools.")?.split('.').next());
        classes.extend(named.chain(call.get("class").and_then(Value::as_str)).map(str::to_owned));
    }
    classes
}
