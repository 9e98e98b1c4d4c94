//! `[target.NAME]` of `frameproof.toml`, as it is written.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::frame::Pointer;
use crate::protocol::ReadingName;

/// A server under test: how to start it, when it is ready, where it listens and what is special about it. Paths are
/// relative to the file. `{{NAME}}` stands for a variable in the values of `url`, `command`, `env`, `cwd`, `ready`, `header` and `setup`:
/// a port of `ports`, `model` (the scripted model's address, `http://127.0.0.1:PORT`), `scratch` (an empty folder of the
/// launched server's own), and what `setup` or `ready.log` found.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TargetConfig {
    /// A protocol that ships with frameproof, or a protocol folder. Default: the `name` or `protocol` of the file.
    pub protocol: Option<String>,
    /// Scenario files or folders, instead of the shipped ones.
    #[serde(default)]
    pub scenario: Vec<PathBuf>,
    /// The server's URL, such as `ws://127.0.0.1:{{port}}/ws`. The session's id is written as in the protocol: `/ws/{session_id}`.
    pub url: String,
    /// The program and its arguments. Without `command` and `process`, the server is already running.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables in addition to those of frameproof. `env:VARIABLE` takes a value from frameproof's environment, and
    /// masks it in every output.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Its working folder; `.` is the folder of the file. Default: `{{scratch}}`, so that it writes nothing beside the file. Words of
    /// `command` that name a file in the folder of the file are then given to it with their full paths.
    pub cwd: Option<String>,
    /// Its home folder (`HOME`); `~` is your own. Default: `{{scratch}}`, so that it neither reads nor writes your settings.
    pub home: Option<String>,
    /// When it is ready: `{ tcp = "HOST:PORT" }`, `{ http = "URL" }`, `{ log = "TEXT" }` or `{ first-frame = true }`. Default: the
    /// URL's port accepts connections.
    pub ready: Option<Ready>,
    /// Several processes instead of `command`, started in this order, each with `name`, `command`, `env`, `cwd` and `ready`.
    #[serde(default)]
    pub process: Vec<ProcessConfig>,
    /// Ports by name: a number, or 0 for a free one.
    #[serde(default)]
    pub ports: IndexMap<String, u16>,
    /// Where the scripted model listens; `127.0.0.1:0` uses a free port. The model is started if this is given, or if
    /// `{{model}}` occurs.
    pub model: Option<SocketAddr>,
    /// The time limit for becoming ready. Default: `30s`.
    pub start_timeout: Option<Time>,
    /// The time limit for stopping after SIGTERM; then it is killed. Default: `5s`.
    pub stop_timeout: Option<Time>,
    /// HTTP calls before clients connect, with `method`, `url`, `header`, `body`, `status`, `save` and `per`.
    #[serde(default)]
    pub setup: Vec<SetupConfig>,
    /// Headers of the upgrade request: `Name: value`, or `Name: env:VARIABLE`.
    #[serde(default)]
    pub header: Vec<String>,
    /// A bearer token for the `Authorization` header of the upgrade request and of the set-up calls: `env:VARIABLE`.
    pub bearer: Option<String>,
    /// The server's own tools by class (`open`, `guarded`, `slow`, `denied`, `failing`), each with `name` and `args`.
    #[serde(default)]
    pub tools: IndexMap<String, ToolConfig>,
    /// Classes of tools that the server does not have: cases that call one are not applicable.
    #[serde(default)]
    pub without_tools: Vec<String>,
    /// The values of the protocol's `parameters` for this server: `{{target.NAME}}` in scenarios.
    #[serde(default)]
    pub parameters: IndexMap<String, Value>,
    /// The same server with one defect each, for `frameproof selftest --target`, with `name`, `env` or `command`, and the requirements that it
    /// `breaks`.
    #[serde(default)]
    pub mutants: Vec<MutantConfig>,
    /// For a server that cannot use the scripted model: plain prompts instead of cues, by a glob over `family/case`
    /// (`family/case.NAME` for its turn of that name); the first match counts.
    #[serde(default)]
    pub prompts: IndexMap<String, String>,
    /// The largest number of sessions, and so of cases, at the same time; 1 for a server with one session for all clients.
    /// Default: `jobs`.
    pub sessions: Option<NonZeroU16>,
    /// When a new server is launched: once for each `run` (the default), `family` or `case`.
    #[serde(default)]
    pub fresh: Fresh,
    /// Multiplies every deadline, and the time in which late effects are looked for, from 0.001 to 1000.
    pub timeout_scale: Option<f64>,
    /// The silence that ends a turn in protocols without a final message: `500ms`, `2s`.
    pub quiet_period: Option<Time>,
    /// A baseline: known failures that do not fail the run.
    pub baseline: Option<PathBuf>,
    /// Merge patches on the protocol, for known deviations.
    #[serde(default)]
    pub overlay: Vec<PathBuf>,
    /// A folder of JSON Schemas that the server has generated: its messages are also validated against them.
    pub schemas: Option<PathBuf>,
    /// Which answer applies where the protocol's document is ambiguous.
    pub reading: Option<ReadingName>,
    /// How it spells the protocol's messages: `own`, a dialect of the protocol, or `auto` (the default).
    pub dialect: Option<String>,
}

/// The server with one defect, which the suite must find: the target with another command, or with more in its environment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MutantConfig {
    /// What reports call it.
    pub name: String,
    /// The program and its arguments, in place of the target's.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables in addition to the target's.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Exactly the requirements that it violates, by id.
    pub breaks: Vec<String>,
}

impl MutantConfig {
    /// The target with this defect.
    #[must_use]
    pub fn of(&self, target: &TargetConfig) -> TargetConfig {
        let mut mutant = target.clone();
        if !self.command.is_empty() {
            mutant.command.clone_from(&self.command);
        }
        mutant.env.extend(self.env.clone());
        mutant
    }
}

/// One process of several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProcessConfig {
    /// What reports call it.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment, beside the target's.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Its working folder. Default: the target's.
    pub cwd: Option<String>,
    /// When the next one may be started. Default: at once; the last one: the target's `ready`.
    pub ready: Option<Ready>,
}

/// When a process is ready: exactly one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, try_from = "ReadyConfig")]
#[schemars(!try_from)]
pub struct Ready {
    /// This address, `HOST:PORT`, takes TCP connections.
    pub tcp: Option<String>,
    /// A GET of this URL is answered with a status from 200 to 399.
    pub http: Option<String>,
    /// A line of its output has this text. `{{NAME}}`, if nothing has set it yet, takes what stands there up to a blank or
    /// what follows in the pattern.
    pub log: Option<String>,
    /// A WebSocket connection to the target's URL receives a first frame.
    #[serde(default)]
    pub first_frame: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ReadyConfig {
    tcp: Option<String>,
    http: Option<String>,
    log: Option<String>,
    #[serde(default)]
    first_frame: bool,
}

impl TryFrom<ReadyConfig> for Ready {
    type Error = String;

    fn try_from(config: ReadyConfig) -> Result<Self, String> {
        let ReadyConfig { tcp, http, log, first_frame } = config;
        let given = [tcp.is_some(), http.is_some(), log.is_some(), first_frame];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err("`ready` has exactly one of tcp, http, log and first-frame".to_owned());
        }
        Ok(Self { tcp, http, log, first_frame })
    }
}

/// An HTTP call before clients connect.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetupConfig {
    /// The method. Default: `POST`.
    pub method: Option<String>,
    /// The URL, `http://…` or `https://…`.
    pub url: String,
    /// Headers: `Name: value`, or `Name: env:VARIABLE`.
    #[serde(default)]
    pub header: Vec<String>,
    /// A JSON body.
    pub body: Option<Value>,
    /// The status that it must answer with. Default: any from 200 to 299.
    pub status: Option<u16>,
    /// Variables to fill from the JSON answer: name to JSON Pointer.
    #[serde(default)]
    pub save: IndexMap<String, Pointer>,
    /// When it is done. Default: for each session.
    #[serde(default)]
    pub per: Per,
}

/// When a set-up call is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Once the server is ready.
    Launch,
    /// Whenever a client opens a new session.
    #[default]
    Session,
}

/// How often a launched server is started afresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fresh {
    /// One for the whole run.
    #[default]
    Run,
    /// One for each family of cases; families run one after the other.
    Family,
    /// One for each case.
    Case,
}

/// A tool of the server's own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToolConfig {
    /// Its name.
    pub name: String,
    /// Its arguments, in place of those that scenarios give, which they may name: `path = "{{key}}"`.
    #[serde(default)]
    pub args: Map<String, Value>,
}

/// A length of time: `250ms`, `3s`.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Time(#[schemars(with = "String")] pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        crate::source::duration(&text).map(Self)
    }
}

impl TargetConfig {
    /// With its paths made relative to `folder`, where the file is.
    #[must_use]
    pub fn relative_to(mut self, folder: &Path) -> Self {
        let paths = self.scenario.iter_mut().chain(&mut self.overlay).chain(&mut self.baseline);
        let paths = paths.chain(&mut self.schemas);
        paths.for_each(|path| *path = folder.join(&*path));
        if let Some(protocol) = &mut self.protocol
            && protocol.contains(['/', '.'])
        {
            *protocol = folder.join(&*protocol).display().to_string();
        }
        self
    }
}
