//! Tables of the keys of YAML files, from the JSON Schemas that `frameproof schema` prints: value, default, bounds and meaning
//! of each. The reference pages of docs/ consist of them.

use serde_json::{Map, Value};

use super::{Failure, usage};
use crate::protocol::extension::{MessageExtension, SchemaExtension};
use crate::protocol::{Extension, RequirementsFile};
use crate::report::table::Table;
use crate::scenario::file::ScenarioFile;
use crate::source::{SYNONYM, schema_of};

/// What an object is called in the tables and in the headings of the pages, where that is not its type's name.
const TITLES: &[(&str, &str)] = &[
    ("At", "place"),
    ("Automatic", "client rule"),
    ("BundleRules", "schema folder"),
    ("FrameRules", "frame rules"),
    ("Joined", "joined text"),
    ("PatternAny", "any of several patterns"),
    ("PatternWhere", "pattern with conditions"),
    ("Place", "command field"),
    ("RawFrame", "frame"),
    ("Respelling", "spelling"),
    ("Rule", "monitor"),
    ("Situation", "session state"),
    ("SpeltValue", "spelt value"),
    ("State", "visible state"),
    ("Through", "third message"),
    ("UpgradeRules", "upgrade"),
];
/// Objects that several pages mention, and the page that describes them.
const PAGES: &[(&str, &str)] = &[
    ("At", "protocol-reference.md"),
    ("Pattern", "protocol-reference.md"),
    ("Rule", "monitor-reference.md"),
    ("TurnStep", "scenario-reference.md"),
];
/// Types that are described where they occur, in these words.
const PLAIN: &[(&str, &str)] = &[
    ("OneOrMany", "text, or list of texts"),
    ("Places", "JSON Pointer, or list of JSON Pointers"),
    ("Pointer", "JSON Pointer"),
    ("Time", "time"),
];
/// Values that only say that a number is unsigned.
const UNBOUNDED: [u64; 3] = [u16::MAX as u64, u32::MAX as u64, u64::MAX];

/// What users write, as [`table`] names it.
const FILES: [&str; 5] = ["scenario", "protocol", "requirements", "message", "schema"];

fn schema_of_file(file: &str) -> Option<Value> {
    Some(match file {
        "scenario" => schema_of::<ScenarioFile>(),
        "protocol" => schema_of::<Extension>(),
        "requirements" => schema_of::<RequirementsFile>(),
        "message" => schema_of::<MessageExtension>(),
        "schema" => schema_of::<SchemaExtension>(),
        _ => return None,
    })
}

/// The table of an object of a file's schema, behind its description. `object` is the type's name; none: the file itself.
///
/// # Errors
/// There is no such file or object.
pub(super) fn table(file: &str, object: Option<&str>) -> Result<String, Failure> {
    let Some(schema) = schema_of_file(file) else {
        return Err(usage(format!("no such file: {file}"), &FILES.join(", ")));
    };
    let shown = object.map_or(Some(&schema), |name| schema.get("$defs")?.get(name));
    let Some(shown) = shown else {
        return Err(usage(format!("no such object: {}", object.unwrap_or_default()), "see `schema`"));
    };
    let tables = Tables { schema: &schema };
    Ok(format!("{}\n\n{}", described(shown), tables.of(shown)))
}

struct Tables<'s> {
    schema: &'s Value,
}

impl Tables<'_> {
    fn of(&self, object: &Value) -> String {
        let Some(properties) = object.get("properties").and_then(Value::as_object) else {
            let mut table = Table::new(["value", "meaning"]);
            for variant in variants(object) {
                table.row([cell(&self.value(variant)), cell(&described(variant))]);
            }
            return table.markdown();
        };
        let mut table = Table::new(["key", "value", "default", "meaning"]);
        let required = |name: &str| items(object, "required").any(|known| known == name);
        for (name, property) in properties {
            let default = if required(name) { "required".to_owned() } else { default(property) };
            let mut meaning = described(property);
            let choices = self.followed(property);
            for choice in
                variants(choices).filter(|_| variants(choices).all(|one| one.get("const").is_some()))
            {
                meaning += &format!(" {}: {}", self.value(choice), described(choice));
            }
            let key = match property.get(SYNONYM).and_then(Value::as_str) {
                Some(synonym) => format!("`{name}` (or `{synonym}`)"),
                None => format!("`{name}`"),
            };
            table.row([key, cell(&self.value(property)), default, cell(&meaning)]);
        }
        table.markdown()
    }

    /// A schema, or what it refers to.
    fn followed<'v>(&'v self, schema: &'v Value) -> &'v Value {
        let named = |schema: &Value| schema.get("$ref").and_then(Value::as_str).map(ToOwned::to_owned);
        let name = named(schema).or_else(|| variants(schema).find_map(named));
        name.and_then(|name| self.schema.pointer(name.trim_start_matches('#'))).unwrap_or(schema)
    }

    /// What a value is, in a few words.
    fn value(&self, schema: &Value) -> String {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return self.named(name.rsplit('/').next().unwrap_or_default());
        }
        if let Some(known) = schema.get("const") {
            return format!("`{}`", known.as_str().map_or_else(|| known.to_string(), ToOwned::to_owned));
        }
        if schema.get("x-hint").and_then(Value::as_str).is_some_and(|hint| hint.contains("length of time")) {
            return "time".to_owned();
        }
        let choices: Vec<_> =
            variants(schema).filter(|one| one.get("type").is_none_or(|kind| kind != "null")).collect();
        if !choices.is_empty() {
            return choices.iter().map(|one| self.value(one)).collect::<Vec<_>>().join(", or ");
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str).unwrap_or_default(),
            Some(kind) => kind.as_str().unwrap_or_default(),
            None => "",
        };
        match kind {
            "string" => "text".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "integer" => format!("whole number{}", bounds(schema)),
            "number" => format!("number{}", bounds(schema)),
            "array" => self.list(schema),
            "object" => self.map(schema),
            _ => "any value".to_owned(),
        }
    }

    fn list(&self, schema: &Value) -> String {
        if let Some(entries) = schema.get("prefixItems").and_then(Value::as_array) {
            let entries: Vec<_> = entries.iter().map(|one| self.value(one)).collect();
            return format!("[{}]", entries.join(", "));
        }
        let entry = schema.get("items").map_or("any value".to_owned(), |entry| self.value(entry));
        let number = schema.get("minItems").filter(|least| schema.get("maxItems") == Some(*least));
        let number = number.map(|number| format!("{number} ")).unwrap_or_default();
        format!("list of {number}{}", plural(&entry))
    }

    fn map(&self, schema: &Value) -> String {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let keys = properties.iter().map(|(name, value)| format!("`{name}`: {}", self.value(value)));
            return format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "));
        }
        match schema.get("additionalProperties") {
            Some(entry @ Value::Object(_)) => format!("map of names to {}", plural(&self.value(entry))),
            _ => "map of names to values".to_owned(),
        }
    }

    /// A type of the schema: in words, or a link to its section.
    fn named(&self, name: &str) -> String {
        if let Some((_, words)) = PLAIN.iter().find(|(known, _)| *known == name) {
            return (*words).to_owned();
        }
        let defined = self.schema.get("$defs").and_then(|all| all.get(name)).unwrap_or(&Value::Null);
        let mut choices = variants(defined).peekable();
        if choices.peek().is_some() && variants(defined).all(|one| one.get("const").is_some()) {
            return choices.map(|one| self.value(one)).collect::<Vec<_>>().join(", ");
        }
        let title = title(name);
        let page = PAGES.iter().find(|(known, _)| *known == name).map(|(_, page)| *page).unwrap_or_default();
        let anchor = match name {
            "Rule" => String::new(),
            "Step" => "#verbs".to_owned(),
            _ => format!("#{}", title.replace(' ', "-")),
        };
        format!("[{title}]({page}{anchor})")
    }
}

/// `RefusedThing`: refused thing.
fn title(name: &str) -> String {
    if let Some((_, title)) = TITLES.iter().find(|(known, _)| *known == name) {
        return (*title).to_owned();
    }
    let mut title = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.extend(letter.to_lowercase());
    }
    title
}

fn plural(words: &str) -> String {
    match words.strip_prefix('[').and_then(|rest| rest.split_once("](")) {
        Some((name, target)) if name.ends_with('s') => format!("[{name}]({target}"),
        Some((name, target)) => match name.strip_suffix('y') {
            Some(stem) => format!("[{stem}ies]({target}"),
            None => format!("[{name}s]({target}"),
        },
        None if matches!(words, "text" | "JSON Pointer" | "any value") => {
            format!("{words}s").replace("any value", "value")
        }
        None if words.starts_with("whole number") => words.replacen("number", "numbers", 1),
        None if words.starts_with("list of") => words.replacen("list", "lists", 1),
        None => words.to_owned(),
    }
}

fn bounds(schema: &Value) -> String {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    match (bound("minimum"), bound("maximum").filter(|most| !UNBOUNDED.contains(most))) {
        (least, Some(most)) => format!(", {} to {}", least.unwrap_or_default(), grouped(most)),
        (Some(least @ 1..), None) => format!(", {least} or more"),
        _ => String::new(),
    }
}

/// `10000`: 10,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn default(property: &Value) -> String {
    match property.get("default") {
        Some(Value::String(text)) => format!("`{text}`"),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => format!("`{value}`"),
        _ => "none".to_owned(),
    }
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    let of = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    of("oneOf").chain(of("anyOf"))
}

fn items<'v>(schema: &'v Value, name: &str) -> impl Iterator<Item = &'v str> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The description of a schema in one paragraph.
fn described(schema: &Value) -> String {
    let text = schema.as_object().and_then(|map: &Map<_, _>| map.get("description")?.as_str());
    text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The objects with named fields that take any other field, too.
    fn lenient(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                let closed = |key: &str| map.get(key) == Some(&Value::Bool(false));
                if map.contains_key("properties")
                    && !closed("additionalProperties")
                    && !closed("unevaluatedProperties")
                {
                    found.push(at.to_owned());
                }
                map.iter().for_each(|(key, value)| lenient(value, &format!("{at}/{key}"), found));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| lenient(item, &format!("{at}/{index}"), found));
            }
            _ => {}
        }
    }

    #[test]
    fn misspelt_keys_are_refused_everywhere() {
        for file in FILES {
            let mut found = Vec::new();
            lenient(&schema_of_file(file).expect("a schema"), file, &mut found);
            assert!(found.is_empty(), "{found:#?}");
        }
    }
}
