//! A target made ready to be launched: environment read, templates checked, defaults filled in.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

use super::config::{Fresh, Per, Ready, SetupConfig, TargetConfig, Time};
use super::group::Groups;
use crate::frame::Pointer;
use crate::template;

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
    /// Where the scripted model is to listen, if it is wanted.
    pub model: Option<SocketAddr>,
    /// Longest time until it is ready.
    pub start: Duration,
    /// Longest time from SIGTERM to SIGKILL.
    pub stop: Duration,
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

/// A process of a target; its values are templates.
#[derive(Debug, Clone)]
pub struct Process {
    /// What reports call it.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment beside frameproof's own.
    pub env: Vec<(String, String)>,
    /// Working folder, relative to the configuration's.
    pub cwd: Option<String>,
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
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// One sentence.
    pub message: String,
    /// A text of the file that it is about.
    pub near: String,
    /// What to do about it.
    pub hint: String,
}

fn wrong(message: String, near: &str, hint: &str) -> SpecError {
    SpecError { message, near: near.to_owned(), hint: hint.to_owned() }
}

impl Spec {
    /// Checks a target. `environment` looks variables up; `folder` is where the file is; `attach`: it is running already.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn new(
        name: &str,
        config: &TargetConfig,
        folder: &Path,
        attach: bool,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SpecError> {
        let mut reader = Reader { environment, secrets: Vec::new() };
        let processes = if attach { Vec::new() } else { processes(name, config, folder, &mut reader)? };
        let bearer = config.bearer.as_deref().map(|text| reader.value(text, "bearer")).transpose()?;
        let bearer = bearer.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
        let mut headers = reader.headers(&config.header)?;
        headers.extend(bearer.clone());
        let mut setup = Vec::new();
        for call in &config.setup {
            setup.push(reader.call(call, bearer.clone())?);
        }
        if attach && let Some((port, _)) = config.ports.iter().find(|(_, number)| **number == 0) {
            let hint = "give it a number, or leave --attach out to have it launched";
            return Err(wrong(
                format!("a running server's port `{port}` is not known: it is 0, a free one"),
                port,
                hint,
            ));
        }
        if processes.is_empty() && config.fresh != Fresh::Run && !attach {
            let hint = "give a `command`, or leave `fresh` out";
            return Err(wrong(
                "a server that is not launched cannot be started afresh".into(),
                "fresh",
                hint,
            ));
        }
        let mut secrets = reader.secrets;
        secrets.extend(headers.iter().map(|(_, value)| value.clone()));
        let time = |own: Option<Time>, default| own.map_or(default, |time| time.0);
        let mut spec = Self {
            name: name.to_owned(),
            url: config.url.clone(),
            processes,
            ports: config.ports.iter().map(|(name, port)| (name.clone(), *port)).collect(),
            ready: config.ready.clone(),
            model: config.model,
            start: time(config.start_timeout, START),
            stop: time(config.stop_timeout, STOP),
            setup,
            headers,
            fresh: if attach { Fresh::Run } else { config.fresh },
            secrets,
            groups: Arc::default(),
        };
        spec.check(config)?;
        Ok(spec)
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

    /// Whether it is launched, and thus ours to restart.
    pub fn is_launched(&self) -> bool {
        !self.processes.is_empty()
    }

    /// Every template names only variables that will be there, and asks for the model if one is `model`.
    fn check(&mut self, config: &TargetConfig) -> Result<(), SpecError> {
        let mut known: BTreeSet<String> = self.ports.iter().map(|(name, _)| name.clone()).collect();
        for reserved in ["model", "scratch"] {
            if known.contains(reserved) {
                return Err(wrong(format!("a port cannot be called `{reserved}`"), reserved, "rename it"));
            }
        }
        known.extend(["model".to_owned(), "scratch".to_owned()]);
        let mut used = BTreeSet::new();
        for process in &self.processes {
            let values = process.command.iter().chain(process.env.iter().map(|(_, value)| value));
            for value in values.chain(&process.cwd) {
                look_up(value, &known, &mut used)?;
            }
            ready_variables(process.ready.as_ref(), &mut known, &mut used)?;
        }
        ready_variables(self.ready.as_ref(), &mut known, &mut used)?;
        for call in &self.setup {
            let body = call.body.iter().flat_map(template::names).map(|name| format!("{{{{{name}}}}}"));
            let headers = call.headers.iter().map(|(_, value)| value.clone());
            for value in headers.chain(body).chain([call.url.clone()]) {
                look_up(&value, &known, &mut used)?;
            }
            known.extend(call.save.keys().cloned());
        }
        for value in self.headers.iter().map(|(_, value)| value).chain([&self.url]) {
            look_up(value, &known, &mut used)?;
        }
        if used.contains("model") && self.model.is_none() {
            self.model = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        }
        if let Some(scale) = config.timeout_scale
            && !(0.001..=1000.0).contains(&scale)
        {
            let message = format!("a factor from 0.001 to 1000 is expected, not {scale}");
            return Err(wrong(message, "timeout-scale", "1.0 leaves the deadlines as they are"));
        }
        Ok(())
    }
}

fn processes(
    name: &str,
    config: &TargetConfig,
    folder: &Path,
    reader: &mut Reader<'_>,
) -> Result<Vec<Process>, SpecError> {
    if !config.command.is_empty() && !config.process.is_empty() {
        let hint = "make the command the last `process`";
        return Err(wrong(
            "a target has a `command` or several `process`es, not both".into(),
            "command",
            hint,
        ));
    }
    let shared = reader.env(&config.env)?;
    let mut found = Vec::new();
    if !config.command.is_empty() {
        found.push(Process {
            name: name.to_owned(),
            command: config.command.clone(),
            env: shared.clone(),
            cwd: config.cwd.clone(),
            folder: folder.to_owned(),
            ready: None,
        });
    }
    for process in &config.process {
        if process.command.is_empty() {
            let message = format!("the process `{}` has an empty command", process.name);
            return Err(wrong(
                message,
                &process.name,
                "the program comes first: [\"python3\", \"server.py\"]",
            ));
        }
        let mut env = shared.clone();
        env.extend(reader.env(&process.env)?);
        found.push(Process {
            name: process.name.clone(),
            command: process.command.clone(),
            env,
            cwd: process.cwd.clone().or(config.cwd.clone()),
            folder: folder.to_owned(),
            ready: process.ready.clone(),
        });
    }
    Ok(found)
}

fn ready_variables(
    ready: Option<&Ready>,
    known: &mut BTreeSet<String>,
    used: &mut BTreeSet<String>,
) -> Result<(), SpecError> {
    let Some(ready) = ready else { return Ok(()) };
    for value in ready.tcp.iter().chain(&ready.http) {
        look_up(value, known, used)?;
    }
    // What is not known yet, the log tells.
    known.extend(ready.log.iter().flat_map(|log| template::names(&Value::from(log.as_str()))));
    Ok(())
}

fn look_up(text: &str, known: &BTreeSet<String>, used: &mut BTreeSet<String>) -> Result<(), SpecError> {
    for name in template::names(&Value::from(text)) {
        if !known.contains(&name) {
            let near = crate::source::nearest(&name, known.iter().map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = known.iter().map(String::as_str).collect();
                    format!("known here are {}", names.join(", "))
                }
            };
            return Err(wrong(format!("nothing sets the variable `{name}`"), &name, &hint));
        }
        used.insert(name);
    }
    Ok(())
}

/// Reads values that may come from the environment, and remembers those.
struct Reader<'r> {
    environment: &'r dyn Fn(&str) -> Option<String>,
    secrets: Vec<String>,
}

impl Reader<'_> {
    fn value(&mut self, text: &str, what: &str) -> Result<String, SpecError> {
        let Some(variable) = text.strip_prefix("env:") else { return Ok(text.to_owned()) };
        let value = (self.environment)(variable).ok_or_else(|| {
            let message = format!("{what}: the environment variable {variable} is not set");
            wrong(message, text, &format!("export {variable} before the run"))
        })?;
        self.secrets.push(value.clone());
        Ok(value)
    }

    fn env(&mut self, env: &IndexMap<String, String>) -> Result<Vec<(String, String)>, SpecError> {
        env.iter().map(|(name, value)| Ok((name.clone(), self.value(value, name)?))).collect()
    }

    fn headers(&mut self, headers: &[String]) -> Result<Vec<(String, String)>, SpecError> {
        const HINT: &str =
            "write `Name: value`, or `Name: env:VARIABLE` to take the value from the environment";
        let mut found = Vec::new();
        for text in headers {
            let (name, value) = text.split_once(':').unwrap_or_default();
            let name = name.trim();
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(fits) {
                return Err(wrong("a header has no name before a colon".into(), text, HINT));
            }
            let value = value.trim();
            let known = self.value(value, name)?;
            if known.chars().any(|c| c.is_control() && c != '\t') {
                let message = format!("the value of header {name} has a control character");
                return Err(wrong(message, value, "is there a line end in it?"));
            }
            found.push((name.to_owned(), known));
        }
        Ok(found)
    }

    fn call(&mut self, call: &SetupConfig, bearer: Option<(String, String)>) -> Result<Call, SpecError> {
        if !call.url.starts_with("http://") && !call.url.starts_with("https://") {
            let message = format!("a set-up call needs an HTTP URL, not `{}`", call.url);
            return Err(wrong(message, &call.url, "http://127.0.0.1:{{port}}/sessions"));
        }
        let method = call.method.clone().unwrap_or_else(|| "POST".to_owned());
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(wrong(format!("`{method}` is no HTTP method"), &method, "GET, POST, PUT, …"));
        }
        let mut headers = self.headers(&call.header)?;
        self.secrets.extend(headers.iter().map(|(_, value)| value.clone()));
        headers.extend(bearer);
        Ok(Call {
            method,
            url: call.url.clone(),
            headers,
            body: call.body.clone(),
            status: call.status,
            save: call.save.clone(),
            per: call.per,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Result<Spec, SpecError> {
        let config: TargetConfig = toml::from_str(text).expect("valid TOML");
        let environment = |name: &str| (name == "TOKEN").then(|| "s3cret-token".to_owned());
        Spec::new("x", &config, Path::new("."), false, &environment)
    }

    #[test]
    fn what_is_wrong_is_said_with_a_hint() {
        for (text, message, hint) in [
            ("url = 'ws://h:{{prt}}/'\nports = { port = 0 }", "nothing sets the variable `prt`", "`port`"),
            ("url = 'ws://h/'\nbearer = 'env:NOPE'", "NOPE is not set", "export NOPE"),
            ("url = 'ws://h/'\nenv = { A = 'env:NOPE' }\ncommand = ['x']", "A: the environment", "export"),
            ("url = 'ws://h/'\nheader = ['nonsense']", "no name before a colon", "Name: value"),
            ("url = 'ws://h/'\nfresh = 'case'", "cannot be started afresh", "command"),
            ("url = 'ws://h/'\nsetup = [{ url = 'ftp://x' }]", "needs an HTTP URL", "http://"),
            ("url = 'ws://h/'\ncommand = ['a']\nprocess = [{ name = 'b', command = ['b'] }]", "not both", ""),
            ("url = 'ws://h/'\nprocess = [{ name = 'b', command = [] }]", "empty command", "comes first"),
            ("url = 'ws://h/'\ntimeout-scale = 0.0", "0.001 to 1000", ""),
            ("url = 'ws://h/'\nports = { model = 1 }", "cannot be called `model`", "rename"),
        ] {
            let error = spec(text).expect_err(text);
            assert!(error.message.contains(message), "{text}: {}", error.message);
            assert!(error.hint.contains(hint), "{text}: {}", error.hint);
        }
    }

    #[test]
    fn variables_come_in_order_and_the_model_is_asked_for() {
        let found = spec(
            "url = 'ws://h:{{port}}/ws/{{id}}'\ncommand = ['s', '{{model}}/v1']\nbearer = 'env:TOKEN'\n\
             ready = { log = 'on {{port}}' }\nsetup = [{ url = 'http://h:{{port}}/s', save = { id = '/id' } }]",
        )
        .expect("valid");
        assert!(found.model.is_some() && found.is_portable() && found.is_launched());
        assert!(found.secrets.contains(&"s3cret-token".to_owned()));
        assert_eq!(found.setup[0].headers, found.headers);
        assert!(toml::from_str::<TargetConfig>("url = 'u'\nready = { tcp = 'a', http = 'b' }").is_err());
    }
}
