//! Which requirements each place of a message's schema decides.

use serde_json::Value;

use crate::frame::field;
use crate::source::schema::{Problem, Schema, Violation};

/// How deep a schema is followed; a recursive one ends here.
const MAX_DEPTH: usize = 12;

/// The annotations of one message's schema, as a tree along the instance.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    root: Node,
    /// Where nothing closer is annotated.
    fallback: Vec<String>,
    /// Requirements of the message as such.
    always: Vec<String>,
    /// How many lists of requirements are told apart.
    numbers: usize,
}

#[derive(Debug, Default)]
struct Node {
    requirements: Vec<String>,
    closed: Vec<String>,
    properties: Vec<(String, Node)>,
    items: Option<Box<Node>>,
    /// `if`, with what `then` (true) or `else` (false) decides.
    branches: Vec<(Schema, bool, Node)>,
    /// The first of its two numbers: of `requirements`, and of `closed`.
    number: usize,
}

/// How often each of a message's lists was counted.
#[derive(Debug, Default)]
pub struct Counts {
    /// By number.
    times: Vec<u64>,
    /// The layout that was counted last: most messages of a stream have the same.
    known: Option<u64>,
    /// Of each of its fields, the property of the schema.
    places: Vec<Option<usize>>,
}

impl Annotations {
    /// Collects the annotations of `schema`, whose local references point into `root`.
    pub(super) fn collect(schema: &Value, root: &Value, always: Vec<String>, fallback: Vec<String>) -> Self {
        let mut root = collect(schema, root, 0);
        // Number 0 is `always`.
        let numbers = root.count_from(1);
        Self { root, fallback, always, numbers }
    }

    /// The requirements that a violation in `body` breaks.
    pub(super) fn blame(&self, violation: &Violation, body: &Value) -> &[String] {
        let mut nearest: &[String] = if self.always.is_empty() { &self.fallback } else { &self.always };
        let mut value = Some(body);
        // All nodes that speak about the value: the one of its place, and those of the branches that hold there.
        let mut nodes = vec![&self.root];
        add_branches(&mut nodes, value);
        nearest = pick(&nodes, |node| &node.requirements).unwrap_or(nearest);
        let path = violation.at.split('/').skip(1).map(crate::source::unescape_token);
        let missing = match &violation.problem {
            Problem::Missing(name) => Some(name.clone()),
            _ => None,
        };
        for token in path.chain(missing) {
            nodes = nodes.into_iter().filter_map(|node| node.below(&token)).collect();
            if nodes.is_empty() {
                return nearest;
            }
            value = value.and_then(|value| match value {
                Value::Array(items) => items.get(token.parse::<usize>().ok()?),
                value => value.get(&token),
            });
            add_branches(&mut nodes, value);
            nearest = pick(&nodes, |node| &node.requirements).unwrap_or(nearest);
        }
        if matches!(violation.problem, Problem::Undeclared(_)) {
            nearest = pick(&nodes, |node| &node.closed).unwrap_or(nearest);
        }
        nearest
    }

    /// Counts the lists of requirements that `body` gives an occasion to break, each by its number.
    pub(super) fn count(&self, body: &Value, layout: Option<u64>, counts: &mut Counts) {
        let Counts { times, known, places } = counts;
        times.resize(self.numbers, 0);
        times[0] += 1;
        let (Some(map), Some(layout)) = (body.as_object(), layout) else {
            return self.root.count(body, times);
        };
        if *known != Some(layout) {
            let place = |key: &String| self.root.properties.iter().position(|(name, _)| name == key);
            (*known, *places) = (Some(layout), map.keys().map(place).collect());
        }
        self.root.count_itself(body, times);
        for (value, place) in map.values().zip(places.iter()) {
            if let Some((_, node)) = place.and_then(|place| self.root.properties.get(place)) {
                node.count(value, times);
            }
        }
    }

    /// The lists that were counted.
    pub(super) fn counted<'s>(&'s self, counts: &'s Counts) -> impl Iterator<Item = (&'s [String], u64)> {
        let mut lists = vec![self.always.as_slice()];
        self.root.lists(&mut lists);
        lists
            .into_iter()
            .zip(counts.times.iter().copied())
            .filter(|(ids, count)| !ids.is_empty() && *count > 0)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let mut lists = vec![self.always.as_slice()];
        self.root.lists(&mut lists);
        lists.into_iter().flatten().map(String::as_str)
    }
}

/// Adds the branches that hold for a value, to any depth. They come after what they specialise.
fn add_branches(nodes: &mut Vec<&Node>, value: Option<&Value>) {
    let mut index = 0;
    while let Some(node) = nodes.get(index).copied() {
        let holding = node
            .branches
            .iter()
            .filter(|(condition, then, _)| value.is_some_and(|value| condition.is_valid(value) == *then));
        nodes.extend(holding.map(|(_, _, branch)| branch));
        index += 1;
    }
}

/// The most special of the lists that is not empty.
fn pick<'n>(nodes: &[&'n Node], list: impl Fn(&'n Node) -> &'n Vec<String>) -> Option<&'n [String]> {
    nodes.iter().rev().map(|node| list(node).as_slice()).find(|ids| !ids.is_empty())
}

impl Node {
    /// What speaks about the value under a key or index.
    fn below(&self, token: &str) -> Option<&Node> {
        let property = self.properties.iter().find(|(name, _)| name == token).map(|(_, node)| node);
        property.or(self.items.as_deref())
    }

    /// All nodes directly below, in a fixed order.
    fn children(&self) -> impl Iterator<Item = &Self> {
        let properties = self.properties.iter().map(|(_, node)| node);
        properties.chain(self.items.as_deref()).chain(self.branches.iter().map(|(_, _, node)| node))
    }

    /// Numbers its lists and those below, and returns the next number.
    fn count_from(&mut self, number: usize) -> usize {
        self.number = number;
        let properties = self.properties.iter_mut().map(|(_, node)| node);
        let branches = self.branches.iter_mut().map(|(_, _, node)| node);
        let children = properties.chain(self.items.as_deref_mut()).chain(branches);
        children.fold(number + 2, |next, child| child.count_from(next))
    }

    /// All lists of requirements, by number.
    fn lists<'s>(&'s self, lists: &mut Vec<&'s [String]>) {
        lists.extend([self.requirements.as_slice(), &self.closed]);
        self.children().for_each(|child| child.lists(lists));
    }

    /// Counts its own lists, and those of its branches.
    fn count_itself(&self, value: &Value, counts: &mut [u64]) {
        counts[self.number] += 1;
        counts[self.number + 1] += u64::from(value.is_object());
        for (condition, then, node) in &self.branches {
            if condition.is_valid(value) == *then {
                node.count(value, counts);
            }
        }
    }

    fn count(&self, value: &Value, counts: &mut [u64]) {
        self.count_itself(value, counts);
        match value {
            Value::Object(map) => {
                for (name, node) in &self.properties {
                    if let Some(value) = field(map, name) {
                        node.count(value, counts);
                    }
                }
            }
            Value::Array(items) => {
                // One element is as good an occasion as many.
                if let (Some(node), Some(first)) = (&self.items, items.first()) {
                    node.count(first, counts);
                }
            }
            _ => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.requirements.is_empty()
            && self.closed.is_empty()
            && self.properties.is_empty()
            && self.items.is_none()
            && self.branches.is_empty()
    }

    fn merge(&mut self, other: Self) {
        self.requirements.extend(other.requirements);
        self.closed.extend(other.closed);
        for (name, node) in other.properties {
            match self.properties.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.merge(node),
                None => self.properties.push((name, node)),
            }
        }
        match (&mut self.items, other.items) {
            (Some(known), Some(node)) => known.merge(*node),
            (slot @ None, node) => *slot = node,
            _ => {}
        }
        self.branches.extend(other.branches);
    }
}

fn collect(schema: &Value, root: &Value, depth: usize) -> Node {
    let mut node = Node::default();
    let Value::Object(map) = schema else { return node };
    if depth > MAX_DEPTH {
        return node;
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'))
        && let Some(target) = root.pointer(target)
    {
        node.merge(collect(target, root, depth + 1));
    }
    let ids = |key: &str| -> Vec<String> {
        let list = map.get("x-frameproof").and_then(|extension| extension.get(key)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    node.requirements.extend(ids("requirements"));
    node.closed.extend(ids("closed"));
    if let Some(Value::Object(properties)) = map.get("properties") {
        for (name, schema) in properties {
            let below = collect(schema, root, depth + 1);
            if !below.is_empty() {
                node.merge(Node { properties: vec![(name.clone(), below)], ..Node::default() });
            }
        }
    }
    if let Some(items) = map.get("items") {
        let below = collect(items, root, depth + 1);
        if !below.is_empty() {
            node.merge(Node { items: Some(Box::new(below)), ..Node::default() });
        }
    }
    if let Some(condition) = map.get("if") {
        for (key, then) in [("then", true), ("else", false)] {
            let below = map.get(key).map(|branch| collect(branch, root, depth + 1)).unwrap_or_default();
            if !below.is_empty() {
                node.branches.push((standalone(condition, root), then, below));
            }
        }
    }
    for branch in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        node.merge(collect(branch, root, depth + 1));
    }
    node
}

/// A condition that may refer to the document's own schemas. The message's schema, of which it is a part, has shown that it is one.
fn standalone(condition: &Value, root: &Value) -> Schema {
    let mut condition = condition.clone();
    if refers(&condition)
        && let (Some(map), Some(components)) = (condition.as_object_mut(), root.get("components"))
    {
        map.insert("components".into(), components.clone());
    }
    Schema::known_good(condition.into())
}

/// Whether a schema refers to another.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| key == "$ref" || refers(value)),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(name: &str) -> Value {
        json!({ "requirements": [name] })
    }

    /// A union told apart by `kind`: each kind has its own idea of `text`.
    fn union() -> (Value, Schema, Annotations) {
        let schema = json!({
            "type": "object",
            "properties": { "item": {
                "type": "object",
                "required": ["kind"],
                "x-frameproof": ids("ITEM"),
                "properties": { "kind": { "type": "string", "x-frameproof": ids("KIND") } },
                "allOf": [
                    {
                        "if": { "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
                        "then": {
                            "required": ["text"],
                            "properties": { "text": { "type": "string", "x-frameproof": ids("A-TEXT") } },
                        },
                        "else": { "properties": { "text": { "type": "integer", "x-frameproof": ids("NUMBER") } } },
                    },
                ],
            } },
        });
        let annotations = Annotations::collect(&schema, &schema, Vec::new(), vec!["ANY".to_owned()]);
        let compiled = Schema::new(&schema).expect("a schema");
        (schema, compiled, annotations)
    }

    #[test]
    fn a_branch_is_blamed_where_it_holds() {
        let (_, schema, annotations) = union();
        for (body, expected) in [
            (json!({ "item": { "kind": "a", "text": 1 } }), "A-TEXT"),
            (json!({ "item": { "kind": "a" } }), "A-TEXT"),
            (json!({ "item": { "kind": "b", "text": "1" } }), "NUMBER"),
            (json!({ "item": { "text": 1 } }), "KIND"),
            (json!({ "item": [] }), "ITEM"),
            (json!([]), "ANY"),
        ] {
            let violations = schema.violations(&body);
            let blamed: Vec<_> =
                violations.iter().flat_map(|found| annotations.blame(found, &body)).collect();
            assert_eq!(blamed, [expected], "{body}: {violations:?}");
        }
    }

    #[test]
    fn a_branch_is_exercised_where_it_holds() {
        let (_, _, annotations) = union();
        let seen = |body: Value| {
            let mut counts = Counts::default();
            annotations.count(&body, None, &mut counts);
            annotations.counted(&counts).flat_map(|(ids, _)| ids.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(seen(json!({ "item": { "kind": "a", "text": "t" } })), ["ITEM", "KIND", "A-TEXT"]);
        assert_eq!(seen(json!({ "item": { "kind": "b", "text": 1 } })), ["ITEM", "KIND", "NUMBER"]);
        assert_eq!(annotations.ids().collect::<Vec<_>>(), ["ITEM", "KIND", "A-TEXT", "NUMBER"]);
    }

    #[test]
    fn a_known_layout_counts_the_same() {
        let (_, _, annotations) = union();
        let (mut with, mut without) = (Counts::default(), Counts::default());
        let item = |kind: &str| json!({ "kind": kind, "text": 1 });
        for (layout, body) in [
            (1, json!({ "item": item("a"), "x": 1 })),
            (1, json!({ "item": item("b"), "x": [] })),
            (2, json!({ "x": 1, "item": item("a") })),
            (3, json!({ "x": 1 })),
            (1, json!({ "item": [], "x": 1 })),
        ] {
            annotations.count(&body, Some(layout), &mut with);
            annotations.count(&body, None, &mut without);
            let times = |counts| annotations.counted(counts).map(|(_, times)| times).collect::<Vec<_>>();
            assert_eq!(times(&with), times(&without), "{body}");
        }
        assert!(annotations.counted(&with).any(|(ids, times)| ids == ["ITEM"] && times == 4));
    }
}
