//! `expect_file`: what a launched server has left on disk.

use std::io::Read;
use std::path::{Component, Path};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::case::client::Received;
use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::ExpectFile;
use crate::shortage;
use crate::source::schema::Schema;

/// Longest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// How often it is looked again. There is no event for that.
const POLL: Duration = Duration::from_millis(20);

impl Interpreter<'_> {
    pub(crate) async fn expect_file(&mut self, verb: &ExpectFile, cx: &StepScope<'_>) -> Result<(), Abort> {
        let Some(instance) = self.cx.server.instance.clone().filter(|instance| instance.spec().is_launched())
        else {
            let reason = "it reads the server's files, which needs a server that frameproof launched";
            return Err(Abort::NotApplicable(reason.to_owned()));
        };
        let path = self.expand(&json!(verb.path), None)?;
        let path = path.as_str().unwrap_or_default().to_owned();
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&path).components().all(plain) {
            return Err(Abort::Error(format!("`expect_file: {path}` leads out of the scratch folder")));
        }
        let (schema, compiled) = match &verb.schema {
            Some(constraint) => self.compiled(constraint)?,
            None => (
                json!({ "type": "string" }),
                Schema::new(&json!({ "type": "string" })).map_err(Abort::Error)?,
            ),
        };
        let until = Instant::now() + self.deadline(verb.within);
        loop {
            let text = read(instance.scratch(), &path).map_err(Abort::Error)?;
            let violations = compiled.violations_within(&text);
            let Some(violation) = violations.first() else { return Ok(()) };
            if Instant::now() >= until {
                let message = match &text {
                    Value::Null => format!("there is no file `{path}` in the scratch folder"),
                    _ => format!("the file `{path}` in the scratch folder {}", violation.problem),
                };
                let seen = Received::made(self.log.last_index(), text);
                return self.fail_step(cx.blame, message, Some(&seen), Some(schema));
            }
            // What the server sends meanwhile is taken in; a broken MUST ends the wait.
            self.receive_until(Instant::now() + POLL).await?;
        }
    }
}

/// A file's text; null where there is none.
fn read(folder: &Path, path: &str) -> Result<Value, String> {
    let full = folder.join(path);
    let (Ok(real), Ok(root)) = (full.canonicalize(), folder.canonicalize()) else { return Ok(Value::Null) };
    if !real.starts_with(root) {
        return Err(format!("`{path}` is a link that leads out of the scratch folder"));
    }
    if !real.is_file() {
        return Err(format!("`{path}` is not a file"));
    }
    let file = match std::fs::File::open(real) {
        Ok(file) => file,
        Err(error) => return shortage::note(&error).map_or(Ok(Value::Null), |short| Err(short.to_string())),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{path} cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("`{path}` is longer than {MAX_FILE} bytes"));
    }
    Ok(Value::from(String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_within_the_folder_only() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "hi").expect("written");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("out")).expect("a link");
        assert_eq!(read(folder.path(), "a.txt"), Ok(json!("hi")));
        assert_eq!(read(folder.path(), "b.txt"), Ok(Value::Null));
        assert!(read(folder.path(), "out").is_err());
        assert!(read(folder.path(), ".").is_err());
    }
}
