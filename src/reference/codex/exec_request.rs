//! The params of command/exec.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::Behaviour;
use super::faults::Defect;
use super::files::absolute;
use super::rpc::{Params, Refusal, invalid, refuse};
use super::shell::{Job, Sandbox};
use super::state::{USER_HOME, WORK};

/// Bytes of a stream that are kept, where the request does not say.
pub(super) const CAP: usize = 1 << 20;
/// How long a command may run, where the request does not say.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The rows and columns of a terminal, where the request does not say.
const SIZE: (u64, u64) = (24, 80);

/// The variables that every command has.
pub(super) fn environment() -> BTreeMap<String, String> {
    let all = [("HOME", USER_HOME), ("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("SHELL", "/bin/sh")];
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// How much of a stream is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cap {
    /// What is usual.
    Usual,
    All,
    Given(usize),
}

/// What a request asks for.
pub(super) struct ExecRequest {
    pub program: Vec<String>,
    pub process: Option<String>,
    pub job: Job,
    pub timeout: Option<Duration>,
    pub cap: Cap,
    pub tty: bool,
    pub stdin: bool,
    pub stream: bool,
}

impl ExecRequest {
    pub fn read(params: &Params<'_>, behaviour: &Behaviour) -> Result<Self, Refusal> {
        let has = |defect| behaviour.strikes(defect);
        let program = params.texts("command")?.ok_or_else(|| invalid("missing field `command`"))?;
        let process = params.maybe_text("processId")?.map(str::to_owned);
        let flag = |name: &str| params.flag(name).map(|flag| flag.unwrap_or(false));
        let (tty, stdin, stream) = (flag("tty")?, flag("streamStdin")?, flag("streamStdoutStderr")?);
        let (no_timeout, no_cap) = (flag("disableTimeout")?, flag("disableOutputCap")?);
        let (timeout, cap) = (params.number("timeoutMs")?, params.number("outputBytesCap")?);
        let size = params.object("size")?.map(|size| dimensions(&Params(size))).transpose()?;
        for (wrong, words, spared) in [
            (program.is_empty(), "the command is empty", Defect::EmptyCommandsRun),
            (no_timeout && timeout.is_some(), "disableTimeout with timeoutMs", Defect::TimeoutsMayContradict),
            (no_cap && cap.is_some(), "disableOutputCap with outputBytesCap", Defect::CapsMayContradict),
            (
                process.is_none() && (tty || stream || stdin && !has(Defect::InputNeedsNoProcess)),
                "streams need a processId",
                Defect::StreamsNeedNoProcess,
            ),
            (size.is_some() && !tty, "size needs tty", Defect::SizeNeedsNoTerminal),
        ] {
            if wrong && !has(spared) {
                return Err(refuse(words));
            }
        }
        let mut env = environment();
        if params.get("env").is_some() && has(Defect::EnvReplaces) {
            env.clear();
        }
        for (name, value) in params.object("env")?.into_iter().flatten() {
            match value {
                Value::Null if has(Defect::NullsAreEmpty) => drop(env.insert(name.clone(), String::new())),
                Value::Null if env.contains_key(name) && has(Defect::InheritedVariablesStay) => {}
                Value::Null => drop(env.remove(name)),
                Value::String(value) if !has(Defect::EnvIsIgnored) => {
                    env.insert(name.clone(), value.clone());
                }
                Value::String(_) => {}
                _ => return Err(invalid("env")),
            }
        }
        let cwd = params.maybe_text("cwd")?;
        let mut sandbox = match params.get("sandboxPolicy") {
            None => Sandbox::ReadOnly,
            Some(policy) => Sandbox::policy(policy).ok_or_else(|| invalid("sandboxPolicy is none"))?,
        };
        behaviour.mutate(&mut sandbox, |defect, sandbox| match defect {
            Defect::ExecHasNoSandbox => *sandbox = Sandbox::Full,
            Defect::ExecNeverWrites => *sandbox = Sandbox::ReadOnly,
            Defect::WorkspaceIsEverything if matches!(sandbox, Sandbox::Workspace(_)) => {
                *sandbox = Sandbox::Full
            }
            _ => {}
        });
        let mut size = size.unwrap_or(SIZE);
        if size != SIZE && has(Defect::SizeIsIgnored) {
            size = SIZE;
        }
        let terminal = tty.then(|| Arc::new(Mutex::new(size)));
        let timeout = match timeout {
            _ if no_timeout => None,
            Some(time) => Some(Duration::from_millis(time)),
            None => Some(TIMEOUT),
        };
        let cap = match cap {
            Some(cap) => Cap::Given(usize::try_from(cap).unwrap_or(usize::MAX)),
            None if no_cap => Cap::All,
            None => Cap::Usual,
        };
        let mut cwd = absolute(WORK, cwd.unwrap_or(WORK));
        if cwd != WORK && has(Defect::ExecIgnoresCwd) {
            WORK.clone_into(&mut cwd);
        }
        let job = Job { cwd, env, sandbox, terminal, input: None };
        Ok(Self { program, process, job, timeout, cap, tty, stdin: stdin || tty, stream: stream || tty })
    }
}

/// Rows and columns.
pub(super) fn dimensions(size: &Params<'_>) -> Result<(u64, u64), Refusal> {
    let of = |name: &str| size.number(name)?.ok_or_else(|| invalid(&format!("missing field `{name}`")));
    Ok((of("rows")?, of("cols")?))
}
