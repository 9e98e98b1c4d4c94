//! Keys of an AsyncAPI document that AsyncAPI does not know: no reader acts on them, a person mistyped them.

use serde_json::{Map, Value};

use crate::source::{Diagnostic, Diagnostics, Document, EXTENSION, Part, escape_token, misspelt_extension};

/// What stands below a key.
#[derive(Clone, Copy)]
enum Below {
    /// Nothing that is looked at: a value, a schema (`check_keywords` has it), or what each binding says for itself.
    Anything,
    /// An object of AsyncAPI.
    One(&'static Known),
    /// A list of them.
    Many(&'static Known),
    /// A map of them, by names of the author's own.
    Named(&'static Known),
}

/// The keys of one kind of object.
struct Known {
    /// What it is called in a sentence.
    title: &'static str,
    keys: &'static [(&'static str, Below)],
    /// The extension of this program has an effect in it.
    extended: bool,
}

/// AsyncAPI 3.0 and 3.1 have the same keys in all of these. A later version may have more: it is not looked at.
const VERSIONS: &[&str] = &["3.0.", "3.1."];

use Below::{Anything, Many, Named, One};

static ROOT: Known = Known {
    title: "the root of an AsyncAPI document",
    extended: true,
    keys: &[
        ("asyncapi", Anything),
        ("channels", Named(&CHANNEL)),
        ("components", One(&COMPONENTS)),
        ("defaultContentType", Anything),
        ("id", Anything),
        ("info", One(&INFO)),
        ("operations", Named(&OPERATION)),
        ("servers", Named(&SERVER)),
    ],
};

static INFO: Known = Known {
    title: "`info`",
    extended: false,
    keys: &[
        ("contact", One(&CONTACT)),
        ("description", Anything),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("license", One(&LICENSE)),
        ("tags", Many(&TAG)),
        ("termsOfService", Anything),
        ("title", Anything),
        ("version", Anything),
    ],
};

static CONTACT: Known = Known {
    title: "a contact",
    extended: false,
    keys: &[("email", Anything), ("name", Anything), ("url", Anything)],
};

static LICENSE: Known =
    Known { title: "a license", extended: false, keys: &[("name", Anything), ("url", Anything)] };

static EXTERNAL_DOCS: Known =
    Known { title: "`externalDocs`", extended: false, keys: &[("description", Anything), ("url", Anything)] };

static TAG: Known = Known {
    title: "a tag",
    extended: false,
    keys: &[("description", Anything), ("externalDocs", One(&EXTERNAL_DOCS)), ("name", Anything)],
};

static SERVER: Known = Known {
    title: "a server",
    extended: false,
    keys: &[
        ("bindings", Anything),
        ("description", Anything),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("host", Anything),
        ("pathname", Anything),
        ("protocol", Anything),
        ("protocolVersion", Anything),
        ("security", Anything),
        ("summary", Anything),
        ("tags", Many(&TAG)),
        ("title", Anything),
        ("variables", Named(&SERVER_VARIABLE)),
    ],
};

static SERVER_VARIABLE: Known = Known {
    title: "a server variable",
    extended: false,
    keys: &[("default", Anything), ("description", Anything), ("enum", Anything), ("examples", Anything)],
};

static CHANNEL: Known = Known {
    title: "a channel",
    extended: false,
    keys: &[
        ("address", Anything),
        ("bindings", Anything),
        ("description", Anything),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("messages", Named(&MESSAGE)),
        ("parameters", Named(&PARAMETER)),
        ("servers", Many(&REFERENCE)),
        ("summary", Anything),
        ("tags", Many(&TAG)),
        ("title", Anything),
    ],
};

static PARAMETER: Known = Known {
    title: "a parameter",
    extended: false,
    keys: &[
        ("default", Anything),
        ("description", Anything),
        ("enum", Anything),
        ("examples", Anything),
        ("location", Anything),
    ],
};

static OPERATION: Known = Known {
    title: "an operation",
    extended: false,
    keys: &[
        ("action", Anything),
        ("bindings", Anything),
        ("channel", One(&REFERENCE)),
        ("description", Anything),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("messages", Many(&REFERENCE)),
        ("reply", One(&REPLY)),
        ("security", Anything),
        ("summary", Anything),
        ("tags", Many(&TAG)),
        ("title", Anything),
        ("traits", Many(&OPERATION_TRAIT)),
    ],
};

static OPERATION_TRAIT: Known = Known {
    title: "an operation trait",
    extended: false,
    keys: &[
        ("bindings", Anything),
        ("description", Anything),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("security", Anything),
        ("summary", Anything),
        ("tags", Many(&TAG)),
        ("title", Anything),
    ],
};

static REPLY: Known = Known {
    title: "a reply",
    extended: false,
    keys: &[("address", One(&REPLY_ADDRESS)), ("channel", One(&REFERENCE)), ("messages", Many(&REFERENCE))],
};

static REPLY_ADDRESS: Known = Known {
    title: "the address of a reply",
    extended: false,
    keys: &[("description", Anything), ("location", Anything)],
};

static REFERENCE: Known = Known { title: "a reference", extended: false, keys: &[("$ref", Anything)] };

static MESSAGE: Known = Known {
    title: "a message",
    extended: true,
    keys: &[
        ("bindings", Anything),
        ("contentType", Anything),
        ("correlationId", One(&CORRELATION_ID)),
        ("deprecated", Anything),
        ("description", Anything),
        ("examples", Many(&EXAMPLE)),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("headers", Anything),
        ("name", Anything),
        ("payload", Anything),
        ("summary", Anything),
        ("tags", Many(&TAG)),
        ("title", Anything),
        // A trait may stand in a pair with values for it.
        ("traits", Anything),
    ],
};

static MESSAGE_TRAIT: Known = Known {
    title: "a message trait",
    extended: false,
    keys: &[
        ("bindings", Anything),
        ("contentType", Anything),
        ("correlationId", One(&CORRELATION_ID)),
        ("deprecated", Anything),
        ("description", Anything),
        ("examples", Many(&EXAMPLE)),
        ("externalDocs", One(&EXTERNAL_DOCS)),
        ("headers", Anything),
        ("name", Anything),
        ("summary", Anything),
        ("tags", Many(&TAG)),
        ("title", Anything),
    ],
};

static CORRELATION_ID: Known = Known {
    title: "a correlation id",
    extended: false,
    keys: &[("description", Anything), ("location", Anything)],
};

static EXAMPLE: Known = Known {
    title: "an example",
    extended: false,
    keys: &[("headers", Anything), ("name", Anything), ("payload", Anything), ("summary", Anything)],
};

static COMPONENTS: Known = Known {
    title: "`components`",
    extended: false,
    keys: &[
        ("channelBindings", Anything),
        ("channels", Named(&CHANNEL)),
        ("correlationIds", Named(&CORRELATION_ID)),
        ("externalDocs", Named(&EXTERNAL_DOCS)),
        ("messageBindings", Anything),
        ("messageTraits", Named(&MESSAGE_TRAIT)),
        ("messages", Named(&MESSAGE)),
        ("operationBindings", Anything),
        ("operationTraits", Named(&OPERATION_TRAIT)),
        ("operations", Named(&OPERATION)),
        ("parameters", Named(&PARAMETER)),
        ("replies", Named(&REPLY)),
        ("replyAddresses", Named(&REPLY_ADDRESS)),
        ("schemas", Anything),
        ("securitySchemes", Anything),
        ("serverBindings", Anything),
        ("serverVariables", Named(&SERVER_VARIABLE)),
        ("servers", Named(&SERVER)),
        ("tags", Named(&TAG)),
    ],
};

/// Adds an error for every key that AsyncAPI does not know, for every `x-…` that is nearly the extension of this program, and for one that
/// stands where it has no effect. All other keys that begin with `x-` are everybody's own.
pub(super) fn check_asyncapi(document: &Value, api: &Document, errors: &mut Diagnostics) {
    let version = document["asyncapi"].as_str().unwrap_or_default();
    let checker = Checker { api, all: VERSIONS.iter().any(|known| version.starts_with(known)) };
    checker.object(document, &ROOT, "", errors);
}

struct Checker<'d> {
    api: &'d Document,
    /// The version of the document is one whose keys are all known.
    all: bool,
}

impl Checker<'_> {
    fn value(&self, value: &Value, below: Below, at: &str, errors: &mut Diagnostics) {
        match (below, value) {
            (One(known), one) => self.object(one, known, at, errors),
            (Many(known), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.object(item, known, &format!("{at}/{index}"), errors);
                }
            }
            (Named(known), Value::Object(named)) => {
                for (name, one) in named {
                    self.object(one, known, &format!("{at}/{}", escape_token(name)), errors);
                }
            }
            _ => {}
        }
    }

    fn object(&self, value: &Value, known: &Known, at: &str, errors: &mut Diagnostics) {
        let Value::Object(map) = value else { return };
        // What stands beside a reference is ignored, whatever it is.
        if map.contains_key("$ref") {
            return;
        }
        for (key, value) in map {
            let place = format!("{at}/{}", escape_token(key));
            match known.keys.iter().find(|(name, _)| name == key) {
                Some((_, below)) => self.value(value, *below, &place, errors),
                None => errors.0.extend(
                    self.mistake(key, known, map).map(|mistake| mistake.at(self.api, &place, Part::Key)),
                ),
            }
        }
    }

    /// What is wrong with a key that AsyncAPI does not have in such an object.
    fn mistake(&self, key: &str, known: &Known, map: &Map<String, Value>) -> Option<Diagnostic> {
        if key == EXTENSION {
            let error = Diagnostic::new(format!("`{EXTENSION}` has no effect in {}", known.title));
            let hint = format!("`{EXTENSION}` is for the root, for messages and for the schemas in them");
            return (!known.extended).then(|| error.hint(hint));
        }
        if let Some(unknown) = misspelt_extension(key) {
            return Some(unknown);
        }
        if key.starts_with("x-") || !self.all {
            return None;
        }
        let own = known.extended.then_some(EXTENSION);
        let keys = known.keys.iter().map(|(name, _)| *name).chain(own);
        // Those that are there already were not meant.
        let free = keys.filter(|name| !map.contains_key(*name));
        Some(Diagnostic::new(format!("{} has no key `{key}`", known.title)).suggest(key, free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of(text: &str) -> String {
        let document = Document::parse("asyncapi.yaml", text).expect("YAML");
        let mut errors = Diagnostics::default();
        check_asyncapi(&document.value, &document, &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_key_that_asyncapi_does_not_know_is_found_wherever_it_stands() {
        for (rest, word, near, place) in [
            ("chanels: {}\n", "chanels", "channels", "2:1"),
            ("frameproof: {}\n", "frameproof", "x-frameproof", "2:1"),
            ("info: { titel: A }\n", "titel", "title", "2:9"),
            ("channels: { c: { adress: /ws } }\n", "adress", "address", "2:18"),
            ("channels: { c: { mesages: {} } }\n", "mesages", "messages", "2:18"),
            ("channels: { c: { messages: { m: { payloed: {} } } } }\n", "payloed", "payload", "2:35"),
            ("channels: { c: { parameters: { p: { locaton: x } } } }\n", "locaton", "location", "2:37"),
            ("operations: { o: { acton: send } }\n", "acton", "action", "2:20"),
            ("operations: { o: { messages: [{ $reff: '#/x' }] } }\n", "$reff", "$ref", "2:33"),
            ("operations: { o: { reply: { message: [] } } }\n", "message", "messages", "2:29"),
            ("components: { mesages: {} }\n", "mesages", "messages", "2:15"),
            ("components: { messages: { m: { examples: [{ paylod: 1 }] } } }\n", "paylod", "payload", "2:45"),
            ("servers: { s: { hots: x } }\n", "hots", "host", "2:17"),
        ] {
            let shown = errors_of(&format!("asyncapi: 3.0.0\n{rest}"));
            let place = format!("asyncapi.yaml:{place}");
            for part in [&format!("`{word}`"), &format!("did you mean `{near}`?"), &place] {
                assert!(shown.contains(part), "{part} is not in\n{shown}");
            }
        }
    }

    #[test]
    fn an_extension_that_is_nearly_ours_is_found() {
        for text in [
            "x-framepoof: {}\n",
            "channels: { c: { messages: { m: { x-frame-proof: {} } } } }\n",
            // Of a later version, too.
            "asyncapi: 3.9.0\nx-frameprof: {}\n",
        ] {
            let shown = errors_of(text);
            assert!(shown.contains("did you mean `x-frameproof`?"), "{text}{shown}");
        }
        for (text, title) in [
            ("channels: { c: { x-frameproof: {} } }\n", "a channel"),
            ("operations: { o: { x-frameproof: {} } }\n", "an operation"),
        ] {
            let shown = errors_of(text);
            assert!(shown.contains(&format!("`x-frameproof` has no effect in {title}")), "{text}{shown}");
        }
    }

    #[test]
    fn what_asyncapi_allows_is_let_alone() {
        for text in [
            "asyncapi: 3.0.0\nx-framework: 1\nx-proof: 1\nx-own: { adress: 1 }\n",
            // A later version may have further keys.
            "asyncapi: 3.2.0\nchanels: {}\ninfo: { subtitle: x }\n",
            // Names are free, and so is what stands beside a reference.
            "asyncapi: 3.1.0\nchannels: { adress: { address: null }, x: { $ref: '#/channels/adress', adress: 1 } }\n",
            "asyncapi: 3.0.0\nchannels: { c: { bindings: { ws: { method: GET, query: {} } }, x-own: 1 } }\n",
            "asyncapi: 3.0.0\ncomponents: { messages: { m: { traits: [[{ $ref: '#/x' }, { a: 1 }]], payload: { schemaFormat: x, schema: 1 } } } }\n",
            "asyncapi: 3.0.0\ncomponents: { securitySchemes: { s: { type: oauth2, flows: { implicit: { scopes: {} } } } } }\n",
        ] {
            assert_eq!(errors_of(text), "", "{text}");
        }
    }
}
