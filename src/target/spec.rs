//! A target made ready to be launched: environment read, templates checked, defaults filled in.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

use super::check;
use super::config::{Fresh, Per, Ready, TargetConfig, Time};
use super::group::Groups;
use super::reader::Reader;
use crate::frame::Pointer;

/// Until it is ready: interpreters that load a model client take a few seconds on a busy machine.
const START: Duration = Duration::from_secs(30);
/// From SIGTERM to SIGKILL.
const STOP: Duration = Duration::from_secs(5);

/// The values of template variables.
pub type Vars = IndexMap<String, String>;

/// A target that can be launched, or (attached) is running already.
#[derive(Debug, Clone)]
pub struct Spec {
    /// What the file calls it.
    pub name: String,
    /// The URL, a template.
    pub url: String,
    /// What is started, in order. Empty: it is running already.
    pub processes: Vec<Process>,
    /// Ports by name; 0: a free one.
    pub ports: Vec<(String, u16)>,
    /// When the last process is ready.
    pub ready: Option<Ready>,
    /// The scripted model, as the target wants it.
    pub model: ModelPlace,
    /// How long it may take to start and to stop.
    pub patience: Patience,
    /// HTTP calls.
    pub setup: Vec<Call>,
    /// Headers of the upgrade request, templates.
    pub headers: Vec<(String, String)>,
    /// How often it is started afresh.
    pub fresh: Fresh,
    /// Texts that must not be shown.
    pub secrets: Vec<String>,
    /// The process groups that are alive.
    pub groups: Arc<Groups>,
}

/// Where the scripted model is, and where the target's server is told of it.
#[derive(Debug, Clone, Default)]
pub struct ModelPlace {
    /// Where it is to listen; none: it is not wanted.
    pub listen: Option<SocketAddr>,
    /// Where in the target's table its address stands: `env.OPENAI_BASE_URL`.
    pub named_in: Vec<String>,
}

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Longest time until it is ready.
    pub start: Duration,
    /// Longest time from SIGTERM to SIGKILL.
    pub stop: Duration,
}

/// A process of a target; its values are templates.
#[derive(Debug, Clone)]
pub struct Process {
    /// What reports call it.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment beside frameproof's own.
    pub env: Vec<(String, String)>,
    /// Working folder, relative to the configuration's; none: the scratch folder.
    pub cwd: Option<String>,
    /// Home folder, likewise; `~`: the user's own.
    pub home: Option<String>,
    /// Folder of the configuration.
    pub folder: PathBuf,
    /// When the next may start.
    pub ready: Option<Ready>,
}

/// An HTTP call; its values are templates.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// A JSON body.
    pub body: Option<Value>,
    /// The status that it must answer with; none: any from 200 to 299.
    pub status: Option<u16>,
    /// Variables to fill from the answer.
    pub save: IndexMap<String, Pointer>,
    /// When.
    pub per: Per,
}

/// What is wrong with a target's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// One sentence.
    pub message: String,
    /// JSON Pointer of what it is about, in the target's table.
    pub at: String,
    /// A part of the value there; empty: all of it.
    pub word: String,
    /// What to do about it.
    pub hint: String,
}

/// What is wrong, in the order of the checks.
#[derive(Debug, Default)]
pub(super) struct Errors(pub Vec<SpecError>);

impl Errors {
    /// Notes an error, once.
    pub fn push(&mut self, message: impl Into<String>, at: &str, word: &str, hint: impl Into<String>) {
        let error = SpecError {
            message: message.into(),
            at: at.to_owned(),
            word: word.to_owned(),
            hint: hint.into(),
        };
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }
}

impl Spec {
    /// Checks a target. `environment` looks variables up; `folder` is where the file is; `attach`: it is running already.
    ///
    /// # Errors
    /// All that is wrong; see [`SpecError`].
    pub fn new(
        name: &str,
        config: &TargetConfig,
        folder: &Path,
        attach: bool,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<SpecError>> {
        let mut reader = Reader { environment, secrets: Vec::new(), errors: Errors::default() };
        let processes = if attach { Vec::new() } else { processes(name, config, folder, &mut reader) };
        let bearer = config.bearer.as_deref().map(|text| reader.value(text, "bearer", "/bearer"));
        let bearer = bearer.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
        let mut headers = reader.headers(&config.header, "/header");
        headers.extend(bearer.clone());
        let calls = config.setup.iter().enumerate();
        let setup = calls.map(|(index, call)| reader.call(call, bearer.clone(), &format!("/setup/{index}")));
        let setup = setup.collect();
        let Reader { mut secrets, mut errors, .. } = reader;
        secrets.extend(headers.iter().map(|(_, value)| value.clone()));
        let time = |own: Option<Time>, default| own.map_or(default, |time| time.0);
        let mut spec = Self {
            name: name.to_owned(),
            url: config.url.clone(),
            processes,
            ports: config.ports.iter().map(|(name, port)| (name.clone(), *port)).collect(),
            ready: config.ready.clone(),
            model: ModelPlace { listen: config.model, named_in: Vec::new() },
            patience: Patience {
                start: time(config.start_timeout, START),
                stop: time(config.stop_timeout, STOP),
            },
            setup,
            headers,
            fresh: if attach { Fresh::Run } else { config.fresh },
            secrets,
            groups: Arc::default(),
        };
        check::check(&mut spec, config, attach, &mut errors);
        if errors.0.is_empty() { Ok(spec) } else { Err(errors.0) }
    }

    /// Whether two instances of it can live at a time: no port of its is fixed.
    pub fn is_portable(&self) -> bool {
        let fixed = self.ports.iter().any(|(_, port)| *port != 0);
        !fixed && (!self.ports.is_empty() || self.learns_port())
    }

    fn learns_port(&self) -> bool {
        let ready = self.processes.iter().map(|process| &process.ready).chain([&self.ready]);
        ready.flatten().any(|ready| ready.log.as_ref().is_some_and(|log| log.contains("{{")))
    }

    /// Whether its processes have the user's working folder and home only where the target says so; how that is told.
    pub fn surroundings(&self) -> Option<&'static str> {
        let has = |is_scratch: fn(&Process) -> bool| self.processes.iter().any(is_scratch);
        let (cwd, home) = (has(|process| process.cwd.is_none()), has(Process::has_scratch_home));
        match (cwd, home) {
            (true, true) => Some(
                "its working folder and its HOME are a scratch folder (`cwd = \".\"` and `home = \"~\"` use your own)",
            ),
            (true, false) => Some("its working folder is a scratch folder (`cwd = \".\"`: that of the file)"),
            (false, true) => Some("its HOME is a scratch folder (`home = \"~\"`: your own)"),
            (false, false) => None,
        }
    }

    /// Whether it is launched, and thus ours to restart.
    pub fn is_launched(&self) -> bool {
        !self.processes.is_empty()
    }
}

impl Process {
    /// Whether its home is the scratch folder because nobody says otherwise.
    pub(super) fn has_scratch_home(&self) -> bool {
        self.home.is_none() && !self.env.iter().any(|(name, _)| name == "HOME")
    }
}

/// Where a process of a target says something: in its own table, or in the target's.
pub(super) fn place(config: &TargetConfig, index: usize, own: bool, key: &str) -> String {
    match config.process.is_empty() || !own {
        true => format!("/{key}"),
        false => format!("/process/{index}/{key}"),
    }
}

fn processes(name: &str, config: &TargetConfig, folder: &Path, reader: &mut Reader<'_>) -> Vec<Process> {
    if !config.command.is_empty() && !config.process.is_empty() {
        let message = "a target has a `command` or several `process`es, not both";
        reader.errors.push(message, "/command", "", "make the command the last `process`");
    }
    let shared = reader.env(&config.env, "/env");
    if !config.command.is_empty() {
        return vec![Process {
            name: name.to_owned(),
            command: config.command.clone(),
            env: shared,
            cwd: config.cwd.clone(),
            home: config.home.clone(),
            folder: folder.to_owned(),
            ready: None,
        }];
    }
    let mut found = Vec::new();
    for (index, process) in config.process.iter().enumerate() {
        let at = format!("/process/{index}");
        if process.command.is_empty() {
            let message = format!("the process `{}` has an empty command", process.name);
            let hint = "the program comes first: [\"python3\", \"server.py\"]";
            reader.errors.push(message, &format!("{at}/command"), "", hint);
        }
        let mut env = shared.clone();
        env.extend(reader.env(&process.env, &format!("{at}/env")));
        found.push(Process {
            name: process.name.clone(),
            command: process.command.clone(),
            env,
            cwd: process.cwd.clone().or(config.cwd.clone()),
            home: config.home.clone(),
            folder: folder.to_owned(),
            ready: process.ready.clone(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Result<Spec, Vec<SpecError>> {
        let config: TargetConfig = toml::from_str(text).expect("valid TOML");
        let environment = |name: &str| (name == "TOKEN").then(|| "s3cret-token".to_owned());
        Spec::new("x", &config, Path::new("."), false, &environment)
    }

    #[test]
    fn what_is_wrong_is_said_with_a_hint() {
        for (text, at, message, hint) in [
            (
                "url = 'ws://h:{{prt}}/'\nports = { port = 0 }",
                "/url",
                "nothing sets the variable `prt`",
                "`port`",
            ),
            ("bearer = 'env:NOPE'", "/bearer", "NOPE is not set", "export NOPE"),
            ("env = { A = 'env:NOPE' }\ncommand = ['x']", "/env/A", "A: the environment", "export"),
            ("env = { A = '{{x}}' }\ncommand = ['x']", "/env/A", "nothing sets the variable `x`", "model"),
            ("command = ['x', '{{y}}']", "/command/1", "nothing sets the variable `y`", "model"),
            ("cwd = 'no/such'\ncommand = ['x']", "/cwd", "no/such is not a folder", "relative to"),
            (
                "process = [{ name = 'b', command = ['b'], cwd = '{{c}}' }]",
                "/process/0/cwd",
                "variable `c`",
                "",
            ),
            (
                "process = [{ name = 'b', command = ['b'], ready = { tcp = '{{c}}' } }]",
                "/process/0/ready/tcp",
                "`c`",
                "",
            ),
            ("header = ['nonsense']", "/header/0", "no name before a colon", "Name: value"),
            ("header = ['A: {{b}}']", "/header/0", "variable `b`", ""),
            ("fresh = 'case'", "/fresh", "cannot be started afresh", "command"),
            ("setup = [{ url = 'ftp://x' }]", "/setup/0/url", "needs an HTTP URL", "http://"),
            (
                "setup = [{ url = 'http://x', body = { a = ['{{b}}'] } }]",
                "/setup/0/body/a/0",
                "variable `b`",
                "",
            ),
            ("command = ['a']\nprocess = [{ name = 'b', command = ['b'] }]", "/command", "not both", ""),
            (
                "process = [{ name = 'b', command = [] }]",
                "/process/0/command",
                "empty command",
                "comes first",
            ),
            ("timeout-scale = 0.0", "/timeout-scale", "0.001 to 1000", ""),
            ("ports = { model = 1 }", "/ports/model", "cannot be called `model`", "rename"),
        ] {
            let text =
                if text.starts_with("url") { text.to_owned() } else { format!("url = 'ws://h/'\n{text}") };
            let errors = spec(&text).expect_err(&text);
            assert_eq!(errors.len(), 1, "{text}: {errors:?}");
            assert!(errors[0].message.contains(message), "{text}: {errors:?}");
            assert!(errors[0].hint.contains(hint), "{text}: {errors:?}");
            assert_eq!(errors[0].at, at, "{text}");
        }
        // All at once.
        let errors = spec("url = 'ws://h:{{x}}'\nbearer = 'env:NOPE'\nheader = ['y', 'A: env:NOPE']")
            .expect_err("three");
        let at: Vec<&str> = errors.iter().map(|error| error.at.as_str()).collect();
        assert_eq!(at, ["/bearer", "/header/0", "/header/1", "/url"]);
    }

    #[test]
    fn variables_come_in_order_and_the_model_is_asked_for() {
        let found = spec(
            "url = 'ws://h:{{port}}/ws/{{id}}'\ncommand = ['s', '{{model}}/v1']\nbearer = 'env:TOKEN'\n\
             ready = { log = 'on {{port}}' }\nsetup = [{ url = 'http://h:{{port}}/s', save = { id = '/id' } }]",
        )
        .expect("valid");
        assert!(found.model.listen.is_some() && found.is_portable() && found.is_launched());
        assert!(found.secrets.contains(&"s3cret-token".to_owned()));
        assert_eq!(found.setup[0].headers, found.headers);
        assert!(toml::from_str::<TargetConfig>("url = 'u'\nready = { tcp = 'a', http = 'b' }").is_err());
    }
}
