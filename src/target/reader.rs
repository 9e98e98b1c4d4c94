//! Values of a target's configuration that may come from the environment.

use indexmap::IndexMap;

use super::config::SetupConfig;
use super::spec::{Call, Errors};
use crate::source::escape_token;
use crate::text::is_token;

/// Reads values that may come from the environment, and remembers those.
pub(super) struct Reader<'r> {
    pub environment: &'r dyn Fn(&str) -> Option<String>,
    pub secrets: Vec<String>,
    pub errors: Errors,
}

impl Reader<'_> {
    /// A value; empty where it cannot be had, which is an error then. `at`: where it stands.
    pub fn value(&mut self, text: &str, what: &str, at: &str) -> String {
        let Some(variable) = text.strip_prefix("env:") else { return text.to_owned() };
        match (self.environment)(variable) {
            Some(value) => {
                self.secrets.push(value.clone());
                value
            }
            None => {
                let message = format!("{what}: the environment variable {variable} is not set");
                self.errors.push(message, at, text, format!("export {variable} before the run"));
                String::new()
            }
        }
    }

    pub fn env(&mut self, env: &IndexMap<String, String>, at: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (name, value) in env {
            let value = self.value(value, name, &format!("{at}/{}", escape_token(name)));
            found.push((name.clone(), value));
        }
        found
    }

    pub fn headers(&mut self, headers: &[String], at: &str) -> Vec<(String, String)> {
        const HINT: &str =
            "write `Name: value`, or `Name: env:VARIABLE` to take the value from the environment";
        let mut found = Vec::new();
        for (index, text) in headers.iter().enumerate() {
            let at = format!("{at}/{index}");
            let (name, value) = text.split_once(':').unwrap_or_default();
            let name = name.trim();
            if !is_token(name) {
                self.errors.push("a header has no name before a colon", &at, "", HINT);
                continue;
            }
            let known = self.value(value.trim(), name, &at);
            if known.chars().any(|c| c.is_control() && c != '\t') {
                let message = format!("the value of header {name} has a control character");
                self.errors.push(message, &at, value.trim(), "is there a line end in it?");
            }
            found.push((name.to_owned(), known));
        }
        found
    }

    pub fn call(&mut self, call: &SetupConfig, bearer: Option<(String, String)>, at: &str) -> Call {
        if !call.url.starts_with("http://") && !call.url.starts_with("https://") {
            let message = format!("a set-up call needs an HTTP URL, not `{}`", call.url);
            self.errors.push(message, &format!("{at}/url"), "", "http://127.0.0.1:{{port}}/sessions");
        }
        let method = call.method.clone().unwrap_or_else(|| "POST".to_owned());
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            let message = format!("`{method}` is not an HTTP method");
            self.errors.push(message, &format!("{at}/method"), "", "GET, POST, PUT, …");
        }
        let mut headers = self.headers(&call.header, &format!("{at}/header"));
        self.secrets.extend(headers.iter().map(|(_, value)| value.clone()));
        headers.extend(bearer);
        Call {
            method,
            url: call.url.clone(),
            headers,
            body: call.body.clone(),
            status: call.status,
            save: call.save.clone(),
            per: call.per,
        }
    }
}
