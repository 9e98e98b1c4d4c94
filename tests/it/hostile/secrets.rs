//! A server that tells everybody what it was sent, in every way: nothing that is written has it.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::process::measured;
use super::server::{Behaviour, frame, said};

/// What is sent by each run, long and short, with letters that are escaped in JSON and in URLs.
const SECRETS: [&str; 4] =
    ["s3cr3t/t0ken+with=all", "quote\"and\\\\slash%41", "pa$$w0rd&<tag>'x", "hunter22"];

/// Each way in which a server may say it, as the text of a JSON string stands on the wire.
pub(super) fn spelt(secret: &str) -> Vec<String> {
    let quoted = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let bearer = format!("Bearer {secret}");
    let hex: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    vec![
        quoted(secret),
        quoted(&bearer),
        secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
        quoted(&quoted(secret)),
        quoted(&percent),
        quoted(&STANDARD.encode(secret)).replace('/', "\\/"),
        quoted(&STANDARD.encode(&bearer)),
        quoted(&URL_SAFE_NO_PAD.encode(format!("x{secret}"))),
        hex.concat(),
        hex.join(":").to_uppercase(),
        quoted(&secret.to_uppercase()),
        // So that it is cut somewhere, wherever texts are cut.
        format!("{}{}", "x".repeat(111), quoted(secret)),
        format!("{}{}", "x".repeat(2030), quoted(secret)),
    ]
}

/// What shows that a text has the secret; the texts are looked at as they are read, and as they stand.
pub(super) fn traces(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let core = |text: String| text[4..text.len() - 4].to_lowercase();
    let mut all = vec![
        secret.to_lowercase(),
        core(STANDARD.encode(secret)),
        core(STANDARD.encode(format!("Bearer {secret}"))),
        core(URL_SAFE_NO_PAD.encode(format!("x{secret}"))),
        hex,
    ];
    all.retain(|trace| trace.len() >= 6);
    all
}

/// A text without the escapes of JSON, XML and URLs, and without what separates hex.
fn plain(text: &str) -> Vec<String> {
    let unescaped = |text: &str| {
        let mut out = Vec::new();
        let bytes = text.as_bytes();
        let mut at = 0;
        let unit = |at: usize| {
            let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
            u16::from_str_radix(digits, 16).ok()
        };
        while at < bytes.len() {
            match (bytes[at], bytes.get(at + 1)) {
                (b'\\', Some(b'u')) if unit(at + 2).is_some() => {
                    out.extend(unit(at + 2));
                    at += 6;
                }
                (b'\\', Some(b'"' | b'\\' | b'/')) => {
                    out.push(u16::from(bytes[at + 1]));
                    at += 2;
                }
                _ => {
                    let c = text[at..].chars().next().expect("a character");
                    out.extend(c.encode_utf16(&mut [0; 2]).iter());
                    at += c.len_utf8();
                }
            }
        }
        String::from_utf16_lossy(&out)
    };
    let entities =
        text.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<").replace("&amp;", "&");
    let once = unescaped(&entities);
    let twice = unescaped(&once);
    let percent = percent_encoding::percent_decode_str(&once).decode_utf8_lossy().into_owned();
    let joined = text.replace(':', "");
    // Binary frames stand in traces as base64.
    let binary = text.split('"').filter_map(|word| STANDARD.decode(word).ok());
    let binary =
        binary.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect::<Vec<_>>().join("\n");
    [text.to_owned(), once, twice, percent, joined, binary].map(|text| text.to_lowercase()).into()
}

/// The first place at which one of these stands, with what is around it.
pub(super) fn shown(text: &str, traces: &[String]) -> Option<String> {
    plain(text).iter().find_map(|text| {
        let at = traces.iter().find_map(|trace| text.find(trace.as_str()))?;
        let from = (0..=at.saturating_sub(40)).rev().find(|at| text.is_char_boundary(*at))?;
        Some(text[from..].chars().take(120).collect())
    })
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn nothing_that_is_written_has_a_secret_however_it_is_spelt() {
    for secret in SECRETS {
        let traces = traces(secret);
        let mut says = Vec::new();
        for text in spelt(secret) {
            says.extend(said(&format!("{{\"type\":\"echo\",\"{text}\":1,\"told\":\"you sent {text}\"}}")));
        }
        says.extend(frame(2, secret.as_bytes()));
        says.extend(frame(2, STANDARD.encode(secret).as_bytes()));
        says.extend(frame(9, secret.as_bytes()));
        says.extend(frame(10, secret.to_uppercase().as_bytes()));
        let first = says.clone();
        says.extend(frame(8, &[&1011u16.to_be_bytes()[..], secret.as_bytes()].concat()));
        // One that says it and stays, one that says it in its last word, and one that says it where no frame may be.
        let servers = [
            Behaviour::answers(first).serve(),
            Behaviour::answers(says).serve(),
            Behaviour::says([&[0xf0][..], secret.as_bytes()].concat()).serve(),
        ];
        for url in servers {
            let folder = tempfile::tempdir().expect("a folder");
            let header = format!("Authorization: Bearer {secret}");
            let server = ["minicodex", "--url", &url, "--header", &header];
            let all = [
                "--report-dir",
                "reports",
                "--summary",
                "s.md",
                "--html-frames",
                "all",
                "--trace",
                "t.ndjson",
            ];
            let reports = ["--junit", "j.xml", "--json", "e.jsonl", "--html", "p.html", "--summary", "s.md"];
            let commands: Vec<Vec<&str>> = vec![
                [
                    &["run"][..],
                    &server,
                    &["handshake/*", "turn/*", "-vv", "--baseline-write", "known.yaml"],
                    &all,
                ]
                .concat(),
                [
                    &["run"][..],
                    &server,
                    &["handshake/*", "--annotations", "github", "--baseline", "known.yaml"],
                ]
                .concat(),
                [&["doctor"][..], &server].concat(),
                [
                    &["fuzz"][..],
                    &server,
                    &["--iterations", "24", "--findings", "found", "--corpus", "corpus"],
                    &reports,
                ]
                .concat(),
                [&["explore"][..], &server, &["--walks", "2", "--save", "saved"]].concat(),
                vec!["report", "e.jsonl", "-vv"],
                vec!["check", "t.ndjson", "--protocol", "minicodex"],
            ];
            for arguments in commands {
                let ran = measured(folder.path(), &arguments);
                assert!(ran.code.is_some(), "{arguments:?}");
                assert_eq!(shown(&ran.shown(), &traces), None, "{secret}: {arguments:?}: {}", ran.shown());
            }
            let written = files(folder.path());
            assert!(written.len() >= 6, "{written:?}");
            let mut masked = 0;
            for path in written {
                let text = String::from_utf8_lossy(&fs::read(&path).expect("written")).into_owned();
                assert_eq!(shown(&text, &traces), None, "{secret}: {}", path.display());
                masked += usize::from(text.contains("[redacted]"));
            }
            assert!(masked >= 2, "{secret}: it was masked in {masked} files only");
        }
    }
}
