//! Whether what a target's configuration says fits together.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use super::config::{Fresh, Ready, TargetConfig};
use super::spec::{Errors, Spec, place};
use crate::source::{escape_token, nearest};
use crate::template;

/// Every template names only variables that will be there; the model is asked for if one is `model`.
pub(super) fn check(spec: &mut Spec, config: &TargetConfig, attach: bool, errors: &mut Errors) {
    if attach && let Some((port, _)) = config.ports.iter().find(|(_, number)| **number == 0) {
        let message = format!("a running server's port `{port}` is not known: it is 0, a free one");
        let hint = "give it a number, or leave --attach out to have it launched";
        errors.push(message, &format!("/ports/{}", escape_token(port)), "", hint);
    }
    if spec.processes.is_empty() && config.fresh != Fresh::Run && !attach {
        let hint = "give a `command`, or leave `fresh` out";
        errors.push("a server that is not launched cannot be started afresh", "/fresh", "", hint);
    }
    if let Some(scale) = config.timeout_scale
        && !(0.001..=1000.0).contains(&scale)
    {
        let message = format!("a factor from 0.001 to 1000 is expected, not {scale}");
        errors.push(message, "/timeout-scale", "", "1.0 leaves the deadlines as they are");
    }
    for reserved in ["model", "scratch"] {
        if config.ports.contains_key(reserved) {
            let message = format!("a port cannot be called `{reserved}`");
            errors.push(message, &format!("/ports/{reserved}"), "", "rename it");
        }
    }
    let mut known: BTreeSet<String> = config.ports.keys().cloned().collect();
    known.extend(["model".to_owned(), "scratch".to_owned()]);
    let mut names = Names { known, model_in: Vec::new(), errors };
    processes(spec, config, &mut names);
    names.ready(spec.ready.as_ref(), "/ready");
    for (index, call) in spec.setup.iter().enumerate() {
        let at = format!("/setup/{index}");
        names.value(&Value::from(call.url.as_str()), &format!("{at}/url"));
        // As they are written: what the environment says is no template, and may be a secret.
        for (header, value) in config.setup[index].header.iter().enumerate() {
            names.value(&Value::from(value.as_str()), &format!("{at}/header/{header}"));
        }
        if let Some(body) = &call.body {
            names.value(body, &format!("{at}/body"));
        }
        names.known.extend(call.save.keys().cloned());
    }
    for (index, header) in config.header.iter().enumerate() {
        names.value(&Value::from(header.as_str()), &format!("/header/{index}"));
    }
    if let Some(bearer) = &config.bearer {
        names.value(&Value::from(bearer.as_str()), "/bearer");
    }
    names.value(&Value::from(spec.url.as_str()), "/url");
    spec.model.named_in = names.model_in;
    if !spec.model.named_in.is_empty() {
        spec.model.listen.get_or_insert(SocketAddr::from(([127, 0, 0, 1], 0)));
    }
}

fn processes(spec: &Spec, config: &TargetConfig, names: &mut Names<'_>) {
    for (index, process) in spec.processes.iter().enumerate() {
        let own = config.process.get(index);
        let command = place(config, index, true, "command");
        for (word, value) in process.command.iter().enumerate() {
            names.value(&Value::from(value.as_str()), &format!("{command}/{word}"));
        }
        for (name, value) in &process.env {
            let at = place(config, index, own.is_some_and(|own| own.env.contains_key(name)), "env");
            names.value(&Value::from(value.as_str()), &format!("{at}/{}", escape_token(name)));
        }
        if let Some(cwd) = &process.cwd {
            let at = place(config, index, own.is_some_and(|own| own.cwd.is_some()), "cwd");
            names.value(&Value::from(cwd.as_str()), &at);
            let folder = process.folder.join(cwd);
            // What a variable stands for is known once it runs.
            if !cwd.contains("{{") && !folder.is_dir() {
                let message = format!("the working folder {} is not a folder", folder.display());
                names.errors.push(
                    message,
                    &at,
                    "",
                    "it is relative to the folder of this file; `{{scratch}}` is one of its own",
                );
            }
        }
        if let Some(home) = &process.home {
            names.value(&Value::from(home.as_str()), "/home");
        }
        names.ready(process.ready.as_ref(), &place(config, index, true, "ready"));
    }
}

/// The variables that templates may name.
struct Names<'n> {
    known: BTreeSet<String>,
    /// Where the model's address stands.
    model_in: Vec<String>,
    errors: &'n mut Errors,
}

impl Names<'_> {
    fn ready(&mut self, ready: Option<&Ready>, at: &str) {
        let Some(ready) = ready else { return };
        for (key, value) in [("tcp", &ready.tcp), ("http", &ready.http)] {
            if let Some(value) = value {
                self.value(&Value::from(value.as_str()), &format!("{at}/{key}"));
            }
        }
        // What is not known yet, the log tells.
        self.known.extend(ready.log.iter().flat_map(|log| template::names(&Value::from(log.as_str()))));
    }

    fn value(&mut self, value: &Value, at: &str) {
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.value(item, &format!("{at}/{index}")));
            }
            Value::Object(map) => {
                map.iter().for_each(|(key, item)| self.value(item, &format!("{at}/{}", escape_token(key))));
            }
            text => {
                for name in template::names(text) {
                    self.name(name, at);
                }
            }
        }
    }

    fn name(&mut self, name: String, at: &str) {
        if !self.known.contains(&name) {
            let near = nearest(&name, self.known.iter().map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = self.known.iter().map(String::as_str).collect();
                    format!("known here are {}", names.join(", "))
                }
            };
            self.errors.push(format!("nothing sets the variable `{name}`"), at, &name, hint);
        } else if name == "model" {
            self.model_in.push(at.trim_start_matches('/').replace('/', "."));
        }
    }
}
