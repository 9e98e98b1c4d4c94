//! The kinds of monitor, for a person: what each is told, and an example that passes and one that does not.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Failure, usage};
use crate::check::examples::{MonitorExample, examples};
use crate::protocol::Extension;
use crate::source::schema_of;

/// A kind of monitor.
pub(super) struct Kind {
    /// What files call it.
    pub name: String,
    /// The property, in a few words.
    pub property: String,
    /// What it says exactly.
    about: String,
    pub parameters: Vec<Parameter>,
}

/// One of its parameters.
pub(super) struct Parameter {
    pub name: String,
    pub required: bool,
    about: String,
}

/// All of them, in the order of the documentation.
pub(super) fn kinds() -> Vec<Kind> {
    let schema = schema_of::<Extension>();
    let kinds = schema.pointer("/$defs/Rule/oneOf").and_then(Value::as_array);
    let kind = |kind: &Value| {
        let name = kind.pointer("/required/0").and_then(Value::as_str).unwrap_or_default();
        let rule = kind.pointer(&format!("/properties/{name}/$ref")).and_then(Value::as_str);
        let rule = rule.and_then(|pointer| schema.pointer(pointer.trim_start_matches('#')));
        let property = described(kind).trim_end_matches('.').to_owned();
        let about = rule.map(described).unwrap_or_default();
        Kind { name: name.to_owned(), property, about, parameters: rule.map(parameters).unwrap_or_default() }
    };
    kinds.into_iter().flatten().map(kind).collect()
}

/// The properties of an object, the required ones first.
fn parameters(rule: &Value) -> Vec<Parameter> {
    let required = rule.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let all = rule.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut all: Vec<Parameter> = all
        .map(|(name, property)| Parameter {
            name: name.clone(),
            required: required.iter().any(|known| known == name),
            about: described(property),
        })
        .collect();
    all.sort_by_key(|parameter| !parameter.required);
    all
}

/// The description of a schema in one paragraph.
fn described(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An example: the parameters as they stand in a file, and both traces with what becomes of them.
fn example(kind: &str, example: &MonitorExample) -> Result<[String; 3], Failure> {
    let mut invariant = String::new();
    example.extension.lines().for_each(|line| invariant += &format!("{line}\n"));
    let _ = write!(
        invariant,
        "invariants:\n  example:\n    about: what it demands\n    monitor:\n      {kind}: {}\n",
        example.monitor
    );
    let judged = example.judge(kind, &example.fails)?;
    let breaks = |index: usize| judged.violations.iter().any(|one| one.event == Some(index as u64));
    let lines = example.fails.lines().enumerate();
    let mut fails: String =
        lines.map(|(index, line)| format!("{} {line}\n", if breaks(index) { ">" } else { " " })).collect();
    for violation in &judged.violations {
        let _ = writeln!(fails, "{}: {}", violation.requirements.join(", "), violation.message);
    }
    let passes = example.passes.lines().map(|line| format!("  {line}\n")).collect();
    Ok([invariant, passes, fails])
}

/// `frameproof explain --monitor NAME`.
///
/// # Errors
/// There is no such monitor.
pub(super) fn explain(name: &str) -> Result<String, Failure> {
    let kinds = kinds();
    let names = || kinds.iter().map(|kind| kind.name.as_str());
    let found = kinds.iter().find(|kind| kind.name == name).zip(examples().get(name));
    let Some((kind, its)) = found else {
        let near = crate::source::nearest(name, names()).map(|near| format!("did you mean `{near}`? "));
        let all = crate::source::all_known(names());
        return Err(usage(
            format!("unknown monitor `{name}`"),
            &format!("{}{all}", near.unwrap_or_default()),
        ));
    };
    let mut text = format!("{name}: {}\n  {}\n\nparameters\n", kind.property, kind.about);
    let width = kind.parameters.iter().map(|one| one.name.len()).max().unwrap_or_default();
    for Parameter { name, required, about } in &kind.parameters {
        let _ = writeln!(text, "  {name:width$}  {}{about}", if *required { "" } else { "(optional) " });
    }
    let [invariant, passes, fails] = example(name, its)?;
    for (title, body) in [("in a protocol file", invariant), ("this passes", passes), ("this fails", fails)] {
        let _ = writeln!(text, "\n{title}");
        body.lines().for_each(|line| _ = writeln!(text, "  {line}"));
    }
    Ok(text)
}

/// A section for each kind of monitor, for the documentation.
///
/// # Errors
/// An example cannot be judged.
pub(super) fn pages() -> Result<String, Failure> {
    let mut text = String::new();
    for kind in kinds() {
        let _ = write!(text, "## `{}`\n\n{}\n\n", kind.name, kind.about);
        let mut table = crate::report::table::Table::new(["parameter", "", "meaning"]);
        for Parameter { name, required, about } in &kind.parameters {
            let optional = if *required { "" } else { "optional" };
            table.row([format!("`{name}`"), optional.to_owned(), about.replace('|', "\\|")]);
        }
        text += &table.markdown();
        let Some(its) = examples().get(&kind.name) else { continue };
        let [invariant, passes, fails] = example(&kind.name, its)?;
        let _ = write!(
            text,
            "\n```yaml\n{invariant}```\n\nThis passes:\n\n```text\n{passes}```\n\nThis fails:\n\n```text\n{fails}```\n\n"
        );
    }
    Ok(text)
}
