//! The inputs that fuzzing begins with: made from the protocols' examples and scenarios, and a few written by hand.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::loaders::DIVIDER;
use super::{all_rules_protocol, shipped};

/// Texts near the border of what a frame is.
const FRAMES: [&str; 16] = [
    "{}",
    "[]",
    "null",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"n\":18446744073709551616,\"m\":-9223372036854775809,\"f\":1e400}",
    "{\"s\":\"\\ud800\"}",
    "{\"a\":NaN}",
    "{\"a\":1}{\"b\":2}",
    "{\"a\":[[[[[[[[[[1]]]]]]]]]]}",
    "\u{feff}{}",
    "{\"a\":\"\\u0000\"}",
    "{\"a\":-0,\"b\":5.0,\"c\":1e308,\"d\":1e-320}",
    "{\"a\":1,} // no",
    "{\"\":{\"\":{\"\":[{}]}}}",
    "{\"a\":\"\\ud83d\\ude00\u{202e}\"}",
];

const TRACES: [&str; 5] = [
    "{\"t_ms\":0,\"client\":\"a\",\"dir\":\"send\",\"kind\":\"open\",\"url\":\"ws://127.0.0.1:1/ws\"}\n{\"t_ms\":1.5,\"client\":\"a\",\"dir\":\"recv\",\"text\":\"{}\"}\n",
    "{\"t_ms\":1,\"case\":\"f/c\",\"client\":\"a\",\"dir\":\"recv\",\"kind\":\"binary\",\"base64\":\"AP8K\"}\n\n{\"t_ms\":2,\"client\":\"a\",\"dir\":\"recv\",\"kind\":\"close\",\"code\":1000,\"reason\":\"bye\"}\n",
    "{\"t_ms\":1e15,\"client\":\"\\u001b[31m\",\"dir\":\"send\",\"kind\":\"ping\",\"base64\":\"\"}\r\n{\"t_ms\":0.000001,\"client\":\"a\",\"dir\":\"recv\",\"kind\":\"end\",\"how\":\"reset\"}",
    "{\"t_ms\":-1,\"client\":\"a\",\"dir\":\"recv\",\"text\":\"x\"}\n",
    "{\"t_ms\":1,\"client\":\"a\",\"dir\":\"up\",\"text\":\"x\"}\n",
];

const OVERLAYS: [&str; 8] = [
    "{}",
    "x-frameproof: { discriminator: /kind }",
    "components: { messages: { say: { payload: { properties: { build: { type: string } } } } } }",
    "components: { messages: { say: null } }",
    "x-frameproof: { invariants: { grows: null, quiet: { monitor: { absence: { of: nothing } } } } }",
    "x-frameproof: { session: { join: connection }, log: null, parts: {} }",
    "components: { schemas: { fields: { properties: { id: { type: string, pattern: '^[a-z]+$' } } } } }",
    "- no map",
];

const BASELINES: [&str; 4] = [
    "known: []",
    "known:\n  - { match: 'A-*', message: came late, reason: bug 1, expires: 2030-01-31 }\n  - { match: family/case, reason: r, expires: 2020-01-01 }\n",
    "known:\n  - match: 'A-['\n    reason: x\n    expires: tomorrow\n  - match: A\n    reason: ' '\n    messag: m\n",
    "known: [{ match: '{a,b}*', message: \"\\e[31m\", reason: \"\\0\" }]",
];

/// Protocols whose schemas refer to themselves.
const CIRCLES: [(&str, &str); 4] = [
    ("a reference to itself", "{ $ref: '#/components/schemas/fields' }"),
    ("two that refer to each other", "{ allOf: [{ $ref: '#/components/messages/say/payload' }] }"),
    (
        "a tree",
        "{ type: object, properties: { list: { type: array, items: { $ref: '#/components/schemas/fields' } } } }",
    ),
    ("the root", "{ $ref: '#' }"),
];

/// The seeds of a target of that name: file name and bytes. Targets that share the seeds of others have none of their own.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let numbered = |texts: &[&str], kind: &str, ending: &str| -> Vec<(String, Vec<u8>)> {
        let name = |at: usize| format!("{kind}-{at}.{ending}");
        texts.iter().enumerate().map(|(at, text)| (name(at), text.as_bytes().to_vec())).collect()
    };
    match target {
        "frame" => numbered(&FRAMES, "border", "json"),
        "trace" => numbered(&TRACES, "trace", "ndjson"),
        "overlay" => {
            let circles =
                CIRCLES.map(|(_, schema)| format!("components: {{ schemas: {{ fields: {schema} }} }}"));
            let circles: Vec<&str> = circles.iter().map(String::as_str).collect();
            let mut seeds = numbered(&OVERLAYS, "overlay", "yaml");
            seeds.extend(numbered(&circles, "circle", "yaml"));
            seeds
        }
        "baseline" => numbered(&BASELINES, "baseline", "yaml"),
        "protocol" => protocols(),
        "scenario" => scenarios(),
        "monitors" | "report" | "frame_structured" => random(target),
        _ => examples(target),
    }
}

fn protocols() -> Vec<(String, Vec<u8>)> {
    let whole = format!("{}{DIVIDER}{}", all_rules_protocol::API, all_rules_protocol::REQUIREMENTS);
    // The head of the file alone, with little below: small enough to be changed often.
    let small = all_rules_protocol::API.split("\n  invariants:").next().unwrap_or_default();
    let misspelt = small.replace("discriminator", "discrimintor").replace("L-1", "L-9");
    let bare = "asyncapi: 3.0.0\nx-frameproof: {}";
    [("lab", whole.as_str()), ("small", small), ("misspelt", &misspelt), ("bare", bare)]
        .into_iter()
        .map(|(name, text)| (format!("{name}.yaml"), text.as_bytes().to_vec()))
        .collect()
}

/// The first case of each shipped scenario file, alone in its family.
fn scenarios() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for protocol in shipped() {
        let cases = crate::scenario::embedded(protocol).unwrap_or_else(|errors| panic!("{errors}"));
        let mut families: Vec<&str> = Vec::new();
        for case in &cases {
            if families.contains(&case.family.as_str()) {
                continue;
            }
            families.push(&case.family);
            let source = case.document.value.pointer(&case.pointer).cloned().unwrap_or_default();
            let file = serde_json::json!({ "family": case.family, "about": "a seed", "cases": [source] });
            // JSON is YAML; spread over lines so that places and lines differ.
            let text = serde_json::to_string_pretty(&file).unwrap_or_default();
            let name = format!("{}-{}.yaml", protocol.name, case.family);
            seeds.push((name, format!("# {}\n{text}\n", protocol.name).into_bytes()));
        }
    }
    seeds
}

/// Every example of a protocol's messages.
fn examples(target: &str) -> Vec<(String, Vec<u8>)> {
    let name = target.strip_prefix("message_").unwrap_or_default();
    let messages =
        shipped().iter().filter(|protocol| protocol.name == name).flat_map(|protocol| &protocol.messages);
    let mut seeds: Vec<(String, Vec<u8>)> = Vec::new();
    for message in messages {
        for (at, example) in message.examples.iter().enumerate() {
            let plain: String = message
                .name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
                .collect();
            let name = format!("{plain}-{}-{at}.json", if message.dir as usize == 0 { "up" } else { "down" });
            seeds.push((name, example.to_string().into_bytes()));
        }
    }
    seeds
}

/// Bytes for the targets that build their input from bytes: the same ones every time.
fn random(target: &str) -> Vec<(String, Vec<u8>)> {
    let seed = target.bytes().map(u64::from).sum();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..32)
        .map(|at| {
            let mut bytes = vec![0; 16 << (at % 8)];
            random.fill_bytes(&mut bytes);
            (format!("random-{at}.bin"), bytes)
        })
        .collect()
}
