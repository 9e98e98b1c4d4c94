//! Which requirements each place of a message's schema decides.

use serde_json::Value;

use crate::source::schema::{Problem, Violation};

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
}

#[derive(Debug, Default)]
struct Node {
    requirements: Vec<String>,
    closed: Vec<String>,
    properties: Vec<(String, Node)>,
    items: Option<Box<Node>>,
}

impl Annotations {
    /// Collects the annotations of `schema`, whose local references point into `root`.
    pub(super) fn collect(schema: &Value, root: &Value, always: Vec<String>, fallback: Vec<String>) -> Self {
        Self { root: collect(schema, root, 0), fallback, always }
    }

    /// The requirements that a violation breaks.
    pub(super) fn blame(&self, violation: &Violation) -> &[String] {
        let mut node = &self.root;
        let mut nearest: &[String] = if self.always.is_empty() { &self.fallback } else { &self.always };
        let keep = |ids: &[String]| -> bool { !ids.is_empty() };
        if keep(&node.requirements) {
            nearest = &node.requirements;
        }
        let path = violation.at.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
        let missing = match &violation.problem {
            Problem::Missing(name) => Some(name.clone()),
            _ => None,
        };
        for token in path.chain(missing) {
            let next = node.properties.iter().find(|(name, _)| *name == token).map(|(_, next)| next);
            let Some(next) = next.or(node.items.as_deref()) else { return nearest };
            node = next;
            if keep(&node.requirements) {
                nearest = &node.requirements;
            }
        }
        if matches!(violation.problem, Problem::Undeclared(_)) && keep(&node.closed) {
            nearest = &node.closed;
        }
        nearest
    }

    /// Names each requirement that `body` gives an occasion to break.
    pub(super) fn exercised<'s>(&'s self, body: &Value, seen: &mut dyn FnMut(&'s str)) {
        self.always.iter().for_each(|id| seen(id));
        self.root.exercised(body, seen);
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let mut ids: Vec<&str> = self.always.iter().map(String::as_str).collect();
        self.root.ids(&mut ids);
        ids.into_iter()
    }
}

impl Node {
    fn exercised<'s>(&'s self, value: &Value, seen: &mut dyn FnMut(&'s str)) {
        self.requirements.iter().for_each(|id| seen(id));
        match value {
            Value::Object(map) => {
                self.closed.iter().for_each(|id| seen(id));
                for (name, node) in &self.properties {
                    if let Some(value) = map.get(name) {
                        node.exercised(value, seen);
                    }
                }
            }
            Value::Array(items) => {
                // One element is as good an occasion as many.
                if let (Some(node), Some(first)) = (&self.items, items.first()) {
                    node.exercised(first, seen);
                }
            }
            _ => {}
        }
    }

    fn ids<'s>(&'s self, ids: &mut Vec<&'s str>) {
        ids.extend(self.requirements.iter().chain(&self.closed).map(String::as_str));
        self.properties.iter().for_each(|(_, node)| node.ids(ids));
        if let Some(items) = &self.items {
            items.ids(ids);
        }
    }

    fn is_empty(&self) -> bool {
        self.requirements.is_empty()
            && self.closed.is_empty()
            && self.properties.is_empty()
            && self.items.is_none()
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
    for branch in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        node.merge(collect(branch, root, depth + 1));
    }
    node
}
