//! The commands of the shell that are done at once.

use std::sync::PoisonError;

use super::Core;
use super::files::{Files, Kind, absolute};
use super::shell::Job;

/// Most numbers that `seq` prints.
const MOST_NUMBERS: u64 = 1_000_000;

/// Where a command may write, if it may.
pub(super) fn writable(job: &Job, path: &str) -> Result<String, String> {
    let path = absolute(&job.cwd, path);
    match job.sandbox.allows(&job.cwd, &path) {
        true => Ok(path),
        false => Err(format!("{path}: read-only file system")),
    }
}

/// Changes files, and tells who watches them.
pub(super) fn change<T>(core: &Core, what: impl FnOnce(&mut Files) -> T) -> T {
    let mut state = core.lock();
    let done = what(&mut state.files);
    state.announce_changes();
    done
}

/// A command that is done at once: what it prints, or its exit code and what is wrong.
pub(super) fn builtin(core: &Core, job: &Job, name: &str, args: &[&str]) -> Result<Vec<u8>, (i64, String)> {
    let failed = |wrong: String| (1, wrong);
    let line = |text: String| Ok(format!("{text}\n").into_bytes());
    let place = |path: &str| absolute(&job.cwd, path);
    let paths = || args.iter().filter(|arg| !arg.starts_with('-'));
    match (name, args) {
        ("true" | ":", _) => Ok(Vec::new()),
        ("false", _) => Err((1, String::new())),
        ("echo", _) => line(args.join(" ")),
        ("printf", [format, ..]) => {
            Ok(format.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").into_bytes())
        }
        ("pwd", _) => line(job.cwd.clone()),
        ("printenv", [name]) => match job.env.get(*name) {
            Some(value) => line(value.clone()),
            None => Err((1, String::new())),
        },
        ("seq", [from, to]) => match (from.parse::<u64>(), to.parse::<u64>()) {
            (Ok(from), Ok(to)) => {
                let numbers = (from..=to.min(from.saturating_add(MOST_NUMBERS))).map(|n| format!("{n}\n"));
                Ok(numbers.collect::<String>().into_bytes())
            }
            _ => Err((1, "invalid argument".to_owned())),
        },
        ("stty", ["size"]) => match &job.terminal {
            Some(size) => {
                let (rows, columns) = *size.lock().unwrap_or_else(PoisonError::into_inner);
                line(format!("{rows} {columns}"))
            }
            None => Err((1, "standard input is not a terminal".to_owned())),
        },
        ("cat", _) => {
            let state = core.lock();
            let texts = paths().map(|path| state.files.read(&place(path)).map(<[u8]>::to_vec));
            texts.collect::<Result<Vec<_>, _>>().map(|texts| texts.concat()).map_err(failed)
        }
        ("grep", ["-c", what, path]) => {
            let state = core.lock();
            let text = String::from_utf8_lossy(state.files.read(&place(path)).map_err(|wrong| (2, wrong))?);
            let count = text.lines().filter(|line| line.contains(what)).count();
            if count == 0 { Err((1, String::new())) } else { line(count.to_string()) }
        }
        ("ls", _) => {
            let state = core.lock();
            let path = paths().next().map_or_else(|| job.cwd.clone(), |path| place(path));
            let names = state.files.children(&path).map_err(failed)?;
            Ok(names.iter().map(|(name, _)| format!("{name}\n")).collect::<String>().into_bytes())
        }
        ("readlink", [path]) => match core.lock().files.entry(&place(path)).map(|node| node.kind.clone()) {
            Some(Kind::Link(target)) => line(target),
            _ => Err((1, String::new())),
        },
        ("touch" | "mkdir" | "mkfifo" | "rm" | "mv" | "ln", _) => {
            let targets: Vec<&str> = paths().copied().collect();
            arrange(core, job, name, &targets).map(|()| Vec::new()).map_err(failed)
        }
        _ => Err((127, "command not found".to_owned())),
    }
}

/// A command that changes files.
fn arrange(core: &Core, job: &Job, name: &str, targets: &[&str]) -> Result<(), String> {
    match (name, targets) {
        ("mv", [from, to]) => {
            let (from, to) = (writable(job, from)?, writable(job, to)?);
            change(core, |files| files.rename(&from, &to))
        }
        ("ln", [target, path]) => {
            let path = writable(job, path)?;
            change(core, |files| files.make(&path, Kind::Link((*target).to_owned())))
        }
        ("mv" | "ln", _) => Err("two operands are needed".to_owned()),
        _ => targets.iter().try_for_each(|path| {
            let path = writable(job, path)?;
            change(core, |files| match name {
                "touch" => {
                    let old = files.read(&path).map(<[u8]>::to_vec).unwrap_or_default();
                    files.write(&path, old)
                }
                "mkdir" => files.create_directory(&path, true),
                "mkfifo" => files.make(&path, Kind::Pipe),
                _ => files.remove(&path, true, false),
            })
        }),
    }
}
