//! A small shell on the machine's files: enough commands to see what a sandbox, an approval and a terminal do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Core;
use super::builtins::{builtin, change, writable};
use super::files::absolute;

/// Longest sleep.
const LONGEST: Duration = Duration::from_secs(3600);

/// What a command may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sandbox {
    ReadOnly,
    /// Below these directories, and below the working directory.
    Workspace(Vec<String>),
    Full,
}

impl Sandbox {
    /// The sandbox of this name, in either spelling.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "read-only" | "readOnly" => Some(Self::ReadOnly),
            "workspace-write" | "workspaceWrite" => Some(Self::Workspace(Vec::new())),
            "danger-full-access" | "dangerFullAccess" => Some(Self::Full),
            _ => None,
        }
    }

    /// The sandbox of a policy.
    pub fn policy(policy: &Value) -> Option<Self> {
        let named = Self::named(policy.get("type")?.as_str()?)?;
        let Self::Workspace(_) = named else { return Some(named) };
        let roots = match policy.get("writableRoots") {
            None | Some(Value::Null) => Vec::new(),
            Some(roots) => {
                let roots = roots.as_array()?.iter();
                roots.map(|root| root.as_str().map(|root| absolute("/", root))).collect::<Option<_>>()?
            }
        };
        Some(Self::Workspace(roots))
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::ReadOnly => json!({ "type": "readOnly" }),
            Self::Workspace(roots) => {
                json!({ "type": "workspaceWrite", "writableRoots": roots, "networkAccess": false })
            }
            Self::Full => json!({ "type": "dangerFullAccess" }),
        }
    }

    /// Whether what runs in `cwd` may write here.
    pub fn allows(&self, cwd: &str, path: &str) -> bool {
        let inside =
            |root: &str| path == root || path.starts_with(&format!("{}/", root.trim_end_matches('/')));
        match self {
            Self::ReadOnly => false,
            Self::Workspace(roots) => inside(cwd) || roots.iter().any(|root| inside(root)),
            Self::Full => true,
        }
    }
}

/// Where a command writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Rows and columns of a terminal.
pub(super) type Size = Arc<Mutex<(u64, u64)>>;

/// What a command runs in.
pub(super) struct Job {
    pub cwd: String,
    pub env: BTreeMap<String, String>,
    pub sandbox: Sandbox,
    pub terminal: Option<Size>,
    /// What is written to it; none, or the end: nothing more comes.
    pub input: Option<mpsc::UnboundedReceiver<Vec<u8>>>,
}

/// What to run.
#[derive(Debug, Clone)]
pub(super) enum Program {
    Words(Vec<String>),
    Script(String),
}

/// Hears what a command writes.
pub(super) type Output<'o> = &'o mut (dyn FnMut(Stream, &[u8]) + Send);

struct Simple {
    words: Vec<String>,
    redirect: Option<Redirect>,
    /// Only where the one before succeeded.
    and: bool,
}

enum Redirect {
    /// To a file; at its end.
    File(String, bool),
    ToErr,
}

/// The commands of a script. An error: what cannot be understood.
fn parse(script: &str) -> Result<Vec<Simple>, String> {
    let mut commands = Vec::new();
    let mut words: Vec<(String, bool)> = Vec::new();
    let mut word: Option<String> = None;
    let mut and = false;
    let mut chars = script.chars().peekable();
    let mut quoted = false;
    fn end(words: &mut Vec<(String, bool)>, commands: &mut Vec<Simple>, and: bool) -> Result<(), String> {
        if words.is_empty() {
            return Ok(());
        }
        let (mut plain, mut redirect) = (Vec::new(), None);
        let mut rest = std::mem::take(words).into_iter();
        while let Some((word, quoted)) = rest.next() {
            match word.as_str() {
                ">&2" if !quoted => redirect = Some(Redirect::ToErr),
                ">" | ">>" if !quoted => {
                    let (target, _) = rest.next().ok_or("syntax error")?;
                    redirect = Some(Redirect::File(target, word == ">>"));
                }
                _ => plain.push(word),
            }
        }
        commands.push(Simple { words: plain, redirect, and });
        Ok(())
    }
    loop {
        let next = chars.next();
        match next {
            Some(quote @ ('\'' | '"')) => {
                let word = word.get_or_insert_default();
                quoted = true;
                loop {
                    match chars.next() {
                        Some(end) if end == quote => break,
                        Some('\\') if quote == '"' => word.extend(chars.next()),
                        Some(each) => word.push(each),
                        None => return Err("unterminated quoted string".to_owned()),
                    }
                }
            }
            Some('\\') => word.get_or_insert_default().extend(chars.next()),
            Some('>') if word.is_none() => {
                let mut sign = ">".to_owned();
                while let Some(more) = chars.next_if(|next| ['>', '&', '2'].contains(next)) {
                    sign.push(more);
                }
                words.push((sign, false));
            }
            Some(each) if !each.is_whitespace() && !";&".contains(each) => {
                word.get_or_insert_default().push(each);
            }
            boundary => {
                words.extend(word.take().map(|word| (word, std::mem::take(&mut quoted))));
                match boundary {
                    Some('&') if chars.next_if_eq(&'&').is_some() => {
                        end(&mut words, &mut commands, and)?;
                        and = true;
                    }
                    Some('&') => return Err("there are no background commands".to_owned()),
                    Some(';' | '\n') | None => {
                        end(&mut words, &mut commands, and)?;
                        and = false;
                    }
                    Some(_) => {}
                }
                if boundary.is_none() {
                    return Ok(commands);
                }
            }
        }
    }
}

/// Runs a program; its exit code. Whoever drops the future ends it.
pub(super) async fn run(core: &Core, job: &mut Job, program: &Program, output: Output<'_>) -> i64 {
    let script = match program {
        Program::Script(script) => script.clone(),
        Program::Words(words) => match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["sh" | "bash" | "/bin/sh" | "/bin/bash", "-c" | "-lc", script] => script.to_owned(),
            _ => return simple(core, job, words, output).await.0,
        },
    };
    let commands = match parse(&script) {
        Ok(commands) => commands,
        Err(wrong) => {
            output(Stream::Err, format!("sh: {wrong}\n").as_bytes());
            return 2;
        }
    };
    let mut code = 0;
    for command in commands {
        if command.and && code != 0 {
            continue;
        }
        let mut kept = Vec::new();
        let (ended, leave) = match &command.redirect {
            None => simple(core, job, &command.words, output).await,
            Some(Redirect::ToErr) => {
                simple(core, job, &command.words, &mut |_, bytes| output(Stream::Err, bytes)).await
            }
            Some(Redirect::File(..)) => {
                let mut keep = |stream: Stream, bytes: &[u8]| match stream {
                    Stream::Out => kept.extend_from_slice(bytes),
                    Stream::Err => output(Stream::Err, bytes),
                };
                simple(core, job, &command.words, &mut keep).await
            }
        };
        code = ended;
        if let Some(Redirect::File(target, append)) = command.redirect
            && let Err(wrong) = store(core, job, &target, kept, append)
        {
            output(Stream::Err, format!("sh: {wrong}\n").as_bytes());
            code = 1;
        }
        if leave {
            break;
        }
    }
    code
}

fn store(core: &Core, job: &Job, target: &str, bytes: Vec<u8>, append: bool) -> Result<(), String> {
    let path = writable(job, target)?;
    change(core, |files| {
        let old = if append { files.read(&path).map(<[u8]>::to_vec).unwrap_or_default() } else { Vec::new() };
        files.write(&path, [old, bytes].concat())
    })
}

/// One command: its exit code, and whether the script ends with it.
async fn simple(core: &Core, job: &mut Job, words: &[String], output: Output<'_>) -> (i64, bool) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((name, args)) = words.split_first() else { return (0, false) };
    match (name.rsplit('/').next().unwrap_or_default(), args) {
        ("sleep", [time]) => {
            let Ok(seconds) = time.parse::<f64>() else {
                output(Stream::Err, b"sleep: invalid time interval\n");
                return (1, false);
            };
            let time = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(LONGEST);
            tokio::time::sleep(time).await;
            (0, false)
        }
        ("cat", []) => {
            while let Some(input) = &mut job.input
                && let Some(bytes) = input.recv().await
            {
                output(Stream::Out, &bytes);
            }
            (0, false)
        }
        ("read", _) => {
            let mut line = Vec::new();
            while let Some(input) = &mut job.input
                && !line.contains(&b'\n')
            {
                match input.recv().await {
                    Some(bytes) => line.extend(bytes),
                    None => return (1, false),
                }
            }
            (i64::from(line.is_empty()), false)
        }
        ("exit", args) => (args.first().and_then(|code| code.parse().ok()).unwrap_or(0), true),
        (name, args) => match builtin(core, job, name, args) {
            Ok(text) => {
                if !text.is_empty() {
                    output(Stream::Out, &text);
                }
                (0, false)
            }
            Err((code, text)) => {
                if !text.is_empty() {
                    output(Stream::Err, format!("{name}: {text}\n").as_bytes());
                }
                (code, false)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_cut_into_commands() {
        let words = |script: &str| -> Vec<Vec<String>> {
            parse(script).expect(script).into_iter().map(|command| command.words).collect()
        };
        assert_eq!(
            words("echo one; sleep 0.4;echo 'a b' \"c\""),
            [vec!["echo", "one"], vec!["sleep", "0.4"], vec!["echo", "a b", "c"]]
        );
        assert_eq!(words(r"printf 'one\n'"), [["printf", r"one\n"]]);
        let commands = parse("echo x >> f && echo y >&2").expect("a script");
        assert!(matches!(&commands[0].redirect, Some(Redirect::File(name, true)) if name == "f"));
        assert!(matches!(commands[1].redirect, Some(Redirect::ToErr)) && commands[1].and);
        assert!(parse("echo 'x").is_err() && parse("sleep 1 &").is_err());
    }

    #[test]
    fn a_sandbox_says_what_may_be_written() {
        let roots =
            Sandbox::policy(&json!({ "type": "workspaceWrite", "writableRoots": ["/r"] })).expect("one");
        for (path, allowed) in [("/r/a", true), ("/c/a", true), ("/ra", false), ("/", false)] {
            assert_eq!(roots.allows("/c", path), allowed, "{path}");
        }
        assert!(!Sandbox::ReadOnly.allows("/c", "/c/a") && Sandbox::Full.allows("/c", "/x"));
    }
}
