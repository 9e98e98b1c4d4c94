//! JSON Schema validation: the one file that names the `jsonschema` crate.

use std::sync::{Arc, OnceLock};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::document::escape_token;
use super::excerpt;

/// A compiled JSON Schema (draft 2020-12 unless it says otherwise; formats are asserted, nothing is fetched).
#[derive(Debug, Clone)]
pub struct Schema(Arc<Lazy>);

/// A schema that is compiled at the latest when it is first used.
#[derive(Debug)]
struct Lazy {
    /// Nothing where the source is no schema after all; then anything is valid.
    compiled: OnceLock<Option<Validator>>,
    /// Where it is not compiled yet.
    source: Option<Arc<Value>>,
}

/// One violation.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// JSON Pointer of the offending value; of the object where a property is missing or undeclared.
    pub at: String,
    /// What is wrong there.
    pub problem: Problem,
}

/// What a violation is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// The object lacks this property.
    Missing(String),
    /// The object has this undeclared property.
    Undeclared(String),
    /// The value has another type.
    Type(String),
    /// The value is none of these.
    NotOneOf(Vec<Value>),
    /// Anything else, as what is said of the value: `has more than 3 items`.
    Other(String),
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it is no JSON Schema, or that it refers to something outside itself.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let compiled = compile(schema).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Lazy { compiled: OnceLock::from(Some(compiled)), source: None })))
    }

    /// A schema of which it is known that it is one: it is compiled when it is first used.
    pub(crate) fn known_good(schema: Arc<Value>) -> Self {
        Self(Arc::new(Lazy { compiled: OnceLock::new(), source: Some(schema) }))
    }

    fn compiled(&self) -> Option<&Validator> {
        let compile = || self.0.source.as_ref().and_then(|source| compile(source).ok());
        self.0.compiled.get_or_init(compile).as_ref()
    }

    /// What is wrong with a schema itself, with places in it.
    pub fn mistakes(schema: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
            explain(&error, &mut found);
        }
        found
    }

    /// Whether the value satisfies the schema.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.compiled().is_none_or(|schema| schema.is_valid(value))
    }

    /// What is wrong with a value of any size, as [`Schema::violations`]: a large value is not looked through to its end. Empty:
    /// nothing is. Where nothing is wrong with what was looked at, the violation is of the whole.
    pub fn violations_within(&self, value: &Value) -> Vec<Violation> {
        if self.is_valid(value) {
            return Vec::new();
        }
        let Some(excerpt) = excerpt::excerpt(value) else { return self.violations(value) };
        let mut found = self.violations(&excerpt);
        found.retain(|violation| excerpt::holds(violation, value, &excerpt));
        if found.is_empty() {
            let problem = "violates its schema, at a place too far from its beginning to be shown";
            found.push(Violation { at: String::new(), problem: Problem::Other(problem.to_owned()) });
        }
        found
    }

    /// Every violation, in the order of the schema. Of alternatives, the one that fits best is reported.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        for error in self.compiled().into_iter().flat_map(|schema| schema.iter_errors(value)) {
            explain(&error, &mut found);
        }
        found
    }
}

fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
}

fn explain(error: &ValidationError<'_>, found: &mut Vec<Violation>) {
    let at = error.instance_path().as_str().to_owned();
    let mut push = |problem| found.push(Violation { at: at.clone(), problem });
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().for_each(|name| push(Problem::Undeclared(name.clone())));
        }
        ValidationErrorKind::Required { property } => {
            push(Problem::Missing(property.as_str().unwrap_or_default().to_owned()));
        }
        ValidationErrorKind::Type { kind } => push(Problem::Type(match kind {
            TypeKind::Single(one) => one.to_string(),
            TypeKind::Multiple(many) => {
                many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
            }
        })),
        ValidationErrorKind::Enum { options } => {
            push(Problem::NotOneOf(options.as_array().cloned().unwrap_or_default()));
        }
        ValidationErrorKind::Constant { expected_value } => {
            push(Problem::NotOneOf(vec![(**expected_value).clone()]));
        }
        ValidationErrorKind::Maximum { limit } => push(Problem::Other(format!("must be at most {limit}"))),
        ValidationErrorKind::Minimum { limit } => push(Problem::Other(format!("must be at least {limit}"))),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            match (choices(context, &at), best_branch(context, &at)) {
                (Some(choices), _) => push(Problem::NotOneOf(choices)),
                (None, Some(branch)) => branch.iter().for_each(|error| explain(error, found)),
                (None, None) => push(Problem::Other(predicate(error))),
            }
        }
        _ => push(Problem::Other(predicate(error))),
    }
}

/// What is wrong with a value, without the value: whoever tells it shows that as far as there is room.
fn predicate(error: &ValidationError<'_>) -> String {
    /// Stands where the value would. No message has it of its own.
    const PLACE: &str = "\u{0}";
    let message = error.masked_with(PLACE).to_string();
    match message.strip_prefix(PLACE) {
        Some(rest) => rest.trim_start().to_owned(),
        None => message.replace(PLACE, "it"),
    }
}

/// The values, where all alternatives are values.
fn choices(context: &[Vec<ValidationError<'static>>], at: &str) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for branch in context {
        let constant = branch.iter().find_map(|error| match error.kind() {
            _ if error.instance_path().as_str() != at => None,
            ValidationErrorKind::Constant { expected_value } => Some(vec![(**expected_value).clone()]),
            ValidationErrorKind::Enum { options } => options.as_array().cloned(),
            _ => None,
        });
        values.extend(constant?);
    }
    Some(values)
}

/// The alternative that was probably meant: the one whose errors lie deepest in the value, and that is not of
/// another type altogether or lacking its only property.
fn best_branch<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    at: &str,
) -> Option<&'e [ValidationError<'static>]> {
    let score = |branch: &[ValidationError<'static>]| {
        let here = branch.iter().filter(|error| error.instance_path().as_str() == at);
        let mismatched = here
            .filter(|error| {
                matches!(
                    error.kind(),
                    ValidationErrorKind::Type { .. }
                        | ValidationErrorKind::Required { .. }
                        | ValidationErrorKind::Constant { .. }
                )
            })
            .count();
        let depth = branch.iter().map(|error| error.instance_path().as_str().matches('/').count()).max();
        (usize::MAX - mismatched, depth, usize::MAX - branch.len())
    };
    context.iter().map(Vec::as_slice).max_by_key(|branch| score(branch)).filter(|branch| !branch.is_empty())
}

impl Violation {
    /// The pointer of the property that is missing or undeclared, else of the value itself.
    pub fn subject(&self) -> String {
        match &self.problem {
            Problem::Missing(name) | Problem::Undeclared(name) => {
                format!("{}/{}", self.at, escape_token(name))
            }
            _ => self.at.clone(),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{} ", self.at)?;
        }
        write!(f, "{}", self.problem)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "`{name}` is missing"),
            Self::Undeclared(name) => write!(f, "`{name}` is not declared"),
            Self::Type(expected) => write!(f, "must be of type {expected}"),
            Self::NotOneOf(options) => {
                let options: Vec<String> = options.iter().map(Value::to_string).collect();
                match options.as_slice() {
                    [one] => write!(f, "must be {one}"),
                    many => write!(f, "must be one of {}", many.join(", ")),
                }
            }
            Self::Other(message) => f.write_str(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_said_without_the_value() {
        for (schema, value, said) in [
            (json!({ "maxItems": 0 }), json!(["x"]), "has more than 0 items"),
            (json!({ "pattern": "^a" }), json!("b"), "does not match \"^a\""),
            (json!({ "minLength": 3 }), json!("b"), "is shorter than 3 characters"),
            (
                json!({ "contains": { "const": 1 } }),
                json!([2]),
                "None of it are valid under the given schema",
            ),
            (json!({ "not": { "const": "b" } }), json!("b"), "{\"const\":\"b\"} is not allowed for it"),
            (json!(false), json!("b"), "False schema does not allow it"),
        ] {
            let found = Schema::new(&schema).expect("a schema").violations(&value);
            assert_eq!(found[0].problem.to_string(), said, "{schema}");
        }
    }

    #[test]
    fn alternatives_that_are_values_are_told_together() {
        let schema =
            |of: &str| Schema::new(&json!({ of: [{ "const": "a" }, { "enum": ["b", "c"] }] })).expect("one");
        for of in ["anyOf", "oneOf"] {
            let problem = Problem::NotOneOf(vec!["a".into(), "b".into(), "c".into()]);
            assert_eq!(schema(of).violations(&json!("d")), [Violation { at: String::new(), problem }]);
        }
        let mixed =
            Schema::new(&json!({ "oneOf": [{ "const": "a" }, { "type": "object", "required": ["n"] }] }));
        let found = mixed.expect("one").violations(&json!({ "m": 1 }));
        assert_eq!(found, [Violation { at: String::new(), problem: Problem::Missing("n".to_owned()) }]);
    }

    #[test]
    fn of_a_large_value_as_much_is_told_as_is_looked_at() {
        let schema = Schema::new(&json!({
            "required": ["z"], "properties": { "l": { "items": { "type": "object" }, "maxItems": 1_000_000 }, "z": { "type": "string" } },
        }));
        let schema = schema.expect("a schema");
        let value = |list: Vec<Value>, z: Value| json!({ "l": list, "z": z });
        assert_eq!(schema.violations_within(&value(vec![json!({}); 100_000], json!("z"))), []);
        let found = schema.violations_within(&value(vec![json!(1); 1_000_000], json!("z")));
        assert!(!found.is_empty() && found.len() <= 4096, "{}", found.len());
        assert!(found.iter().all(|one| one.at.starts_with("/l/") && matches!(one.problem, Problem::Type(_))));
        // What is wrong lies behind what is looked at; what only the excerpt lacks is not told.
        let mut late = vec![json!({}); 100_000];
        late[99_999] = json!(1);
        let found = schema.violations_within(&value(late, json!("z")));
        assert!(
            matches!(&found[..], [Violation { at, problem: Problem::Other(_) }] if at.is_empty()),
            "{found:?}"
        );
        // A long key stands in the place of all that is wrong below it.
        let long = json!({ "z": 1, "k".repeat(1 << 20): vec![json!(1); 4000] });
        assert_eq!(schema.violations_within(&long).len(), 1);
    }

    #[test]
    fn a_wrong_schema_says_where() {
        let found = Schema::mistakes(&json!({ "properties": { "n": { "type": "nummer" } } }));
        assert!(
            matches!(&found[..], [Violation { at, problem: Problem::NotOneOf(_) }] if at == "/properties/n/type")
        );
        assert_eq!(Schema::mistakes(&json!({ "type": ["null", "string"], "x-own": 1 })), []);
    }
}
