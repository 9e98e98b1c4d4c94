//! Response items, and the commands behind tool calls.

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::faults::Defect;
use super::styles::Style;
use crate::reference::engine::notes::{self, Class, Notes, Outcome};

/// A tool call as a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub kind: Kind,
    /// The tool of the notes that it runs, and its arguments.
    tool: String,
    args: Map<String, Value>,
    /// What the user is asked about.
    pub words: Vec<String>,
}

/// How a command is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// As function_call.
    Function,
    /// As function_call of apply_patch; the patch.
    Patch(String),
    /// As local_shell_call.
    Shell,
}

impl Command {
    /// The command of a call. `local_shell` runs `args.command`: a tool and its arguments in order. `apply_patch` writes
    /// the note that the patch names.
    pub fn new(name: &str, args: Map<String, Value>) -> Self {
        match name {
            "local_shell" => {
                let words = args.get("command").and_then(Value::as_array).into_iter().flatten();
                let words: Vec<String> = words.filter_map(Value::as_str).map(str::to_owned).collect();
                let tool = words.first().cloned().unwrap_or_default();
                let names = match tool.as_str() {
                    "write_note" => &["key", "text"][..],
                    "read_note" => &["key"],
                    _ => &["message"],
                };
                let args = names.iter().zip(words.iter().skip(1));
                let args = args.map(|(name, word)| ((*name).to_owned(), json!(word))).collect();
                Self { kind: Kind::Shell, tool, args, words }
            }
            "apply_patch" => {
                let patch = args.get("patch").and_then(Value::as_str).unwrap_or_default().to_owned();
                let file = patch.lines().find_map(|line| {
                    line.strip_prefix("*** Add File: ").or(line.strip_prefix("*** Update File: "))
                });
                let added: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix('+')).collect();
                let write = json!({ "key": file.unwrap_or_default(), "text": added.join("\n") });
                let write = write.as_object().cloned().unwrap_or_default();
                let words = vec!["apply_patch".to_owned(), patch.clone()];
                Self { kind: Kind::Patch(patch), tool: "write_note".to_owned(), args: write, words }
            }
            name => {
                let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let words = std::iter::once(name.to_owned()).chain(args.values().map(word)).collect();
                Self { kind: Kind::Function, tool: name.to_owned(), args, words }
            }
        }
    }

    pub fn is_dangerous(&self) -> bool {
        notes::class(&self.tool) != Class::Open
    }

    /// A defect: its arguments without the white space at their ends.
    pub fn trim(&mut self) {
        for value in self.args.values_mut() {
            if let Some(text) = value.as_str() {
                *value = json!(text.trim());
            }
        }
    }

    pub fn duration(&self) -> std::time::Duration {
        notes::duration(&self.tool, &self.args)
    }

    pub fn run(&self, notes: &mut Notes) -> Outcome {
        notes.run(&self.tool, &self.args)
    }

    /// The payload of approval_request.
    pub fn request(&self, behaviour: &Behaviour) -> Value {
        let mut request = json!({ "command": self.words });
        if let Kind::Patch(patch) = &self.kind {
            request["applyPatch"] = json!({ "patch": patch });
        }
        behaviour.mutate(&mut request, |defect, request| match (defect, &self.kind) {
            (Defect::CommandAsText, _) => request["command"] = json!(self.words.join(" ")),
            (Defect::NoPatch, _) => {
                request.as_object_mut().map(|request| request.remove("applyPatch"));
            }
            (Defect::PatchHasNoText, Kind::Patch(_)) => request["applyPatch"] = json!({ "files": 1 }),
            (Defect::PatchEverywhere, Kind::Function | Kind::Shell) => request["applyPatch"] = json!({}),
            _ => {}
        });
        request
    }

    /// The item that announces the command.
    pub fn call(&self, id: &str, behaviour: &Behaviour) -> Value {
        let shell = matches!(self.kind, Kind::Shell);
        let mut item = if shell {
            let action = json!({ "command": self.words });
            json!({ "id": id, "type": "local_shell_call", "call_id": id, "action": action, "status": "completed" })
        } else {
            let (name, arguments) = match &self.kind {
                Kind::Patch(patch) => ("apply_patch", json!({ "patch": patch })),
                _ => (self.tool.as_str(), Value::Object(self.args.clone())),
            };
            let text = arguments.to_string();
            json!({ "id": id, "type": "function_call", "call_id": id, "name": name, "arguments": text })
        };
        behaviour.mutate(&mut item, |defect, item| match defect {
            Defect::ItemWithoutType => {
                item.as_object_mut().map(|item| item.remove("type"));
            }
            Defect::ArgumentsAsObject if !shell => item["arguments"] = Value::Object(self.args.clone()),
            Defect::ArgumentsAreNoJson if !shell => item["arguments"] = json!("key=value"),
            Defect::NoArgumentsNoJson if item["arguments"] == json!("{}") => item["arguments"] = json!(""),
            Defect::ArgumentsUnescaped | Defect::LongArgumentsAreCut => {
                if let Some(text) = item["arguments"].as_str() {
                    item["arguments"] = json!(match defect {
                        Defect::ArgumentsUnescaped => text.replace("\\\"", "\""),
                        _ => text.chars().take(200).collect(),
                    });
                }
            }
            Defect::ShellCommandAsText if shell => {
                item["action"] = json!({ "command": self.words.join(" ") });
            }
            _ => {}
        });
        item
    }

    /// The item with what came of it.
    pub fn output(&self, id: &str, outcome: &Outcome, behaviour: &Behaviour) -> Value {
        let shell = matches!(self.kind, Kind::Shell);
        let seconds = self.duration().as_secs_f64();
        let failed = if behaviour.style(Style::OddExitCodes) { -1 } else { 1 };
        let code = if outcome.is_error { failed } else { 0 };
        let mut metadata = json!({ "exit_code": code, "duration_seconds": seconds });
        if behaviour.strikes(Defect::NoDuration) {
            metadata.as_object_mut().map(|metadata| metadata.remove("duration_seconds"));
        }
        let output = json!({ "output": outcome.text, "metadata": metadata });
        let kind = if shell { "local_shell_call_output" } else { "function_call_output" };
        let text = output.to_string();
        let mut item = json!({ "id": format!("{id}-output"), "type": kind, "call_id": id, "output": text });
        behaviour.mutate(&mut item, |defect, item| match defect {
            Defect::ItemWithoutId => {
                item.as_object_mut().map(|item| item.remove("id"));
            }
            Defect::OutputOfAnotherCall if !shell => item["call_id"] = json!("call_0"),
            Defect::OutputAsObject if !shell => item["output"] = output,
            Defect::FailedOutputAsObject if !shell && outcome.is_error => item["output"] = output,
            Defect::ShellOutputAsObject if shell => item["output"] = output,
            _ => {}
        });
        item
    }
}

/// A message item, or a chunk of one.
pub(super) fn message(id: &str, role: &str, text: &str, behaviour: &Behaviour) -> Value {
    let kind = if role == "assistant" && behaviour.strikes(Defect::OutputText) {
        "output_text"
    } else {
        "input_text"
    };
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let parts = match behaviour.style(Style::TwoTextParts) && middle > 0 {
        true => vec![&text[..middle], &text[middle..]],
        false => vec![text],
    };
    let content: Vec<Value> = parts.iter().map(|text| json!({ "type": kind, "text": text })).collect();
    let mut item = json!({ "id": id, "type": "message", "role": role, "content": content });
    if role == "assistant" && behaviour.strikes(Defect::MessageWithoutRole) {
        item.as_object_mut().map(|item| item.remove("role"));
    }
    item
}

/// A reasoning item.
pub(super) fn reasoning(
    id: &str,
    parts: &[String],
    took: std::time::Duration,
    behaviour: &Behaviour,
) -> Value {
    let content: Vec<Value> =
        parts.iter().map(|text| json!({ "type": "input_text", "text": text })).collect();
    let mut item =
        json!({ "id": id, "type": "reasoning", "content": content, "duration_ms": took.as_millis() as u64 });
    if behaviour.strikes(Defect::ReasoningWithoutDuration) {
        item.as_object_mut().map(|item| item.remove("duration_ms"));
    }
    item
}
