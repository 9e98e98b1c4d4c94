//! How clients connect (`x-frameproof.upgrade`), and what a suite must know of the server under test (`x-frameproof.parameters`).

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Protocol;
use super::extension::Ids;
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};
use crate::template;
use crate::text::is_token;

/// The header that offers sub-protocols (RFC 6455, 11.3.4).
pub const OFFER: &str = "Sec-WebSocket-Protocol";
/// What `selects` says where no sub-protocol must be selected.
const NONE: &str = "none";
const UPGRADE: &str = "/x-frameproof/upgrade";
const PARAMETERS: &str = "/x-frameproof/parameters";

/// What every client requests when it connects, unless the run, the target or an `open` overrides it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UpgradeRules {
    /// Headers of the upgrade request. `{{target.NAME}}` is a parameter of the target. A header of this name of the run, the target or an
    /// `open` replaces it.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// The sub-protocols that clients offer, in order of preference.
    #[serde(default)]
    pub protocols: Vec<String>,
    /// The sub-protocol that the server must select of these; `none`: it must select none. Absent: any of them.
    pub selects: Option<String>,
    /// Violated by a server that selects another one, and exercised by a correct selection.
    #[serde(default)]
    pub covers: Ids,
}

/// Something that differs from server to server, and that cases depend on: `{{target.NAME}}` in scenarios, openings and `upgrade`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Parameter {
    /// What it is, in one sentence.
    pub about: String,
    /// The value for a target that gives none in its `parameters`. Without a default, cases that need it are not applicable to such a target.
    pub default: Option<Value>,
}

impl UpgradeRules {
    /// The value of the header that offers the sub-protocols; none: none is offered.
    #[must_use]
    pub fn offer(&self) -> Option<String> {
        (!self.protocols.is_empty()).then(|| self.protocols.join(", "))
    }

    /// The sub-protocol that must be selected of those that are offered (`Some(None)`: none at all), if it matters.
    #[must_use]
    pub fn selected(&self) -> Option<Option<&str>> {
        self.selects.as_deref().map(|name| (name != NONE).then_some(name))
    }
}

impl Protocol {
    /// What a parameter of the target is, if somebody says so.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&Value> {
        self.extension.parameters.get(name)?.default.as_ref()
    }

    /// What a parameter of the target has at `NAME` or `NAME.MEMBER`, if somebody says so.
    #[must_use]
    pub fn parameter_at(&self, path: &str) -> Option<Value> {
        match path.split_once('.') {
            Some((name, member)) => template::dig(self.parameter(name)?, member),
            None => self.parameter(path).cloned(),
        }
    }

    /// The headers that every client sends in its upgrade request, unless something else is said of them.
    ///
    /// # Errors
    /// A sentence about a parameter of the target that they need and nobody gives.
    pub fn upgrade_headers(&self) -> Result<Vec<(String, String)>, String> {
        let Some(upgrade) = &self.extension.upgrade else { return Ok(Vec::new()) };
        let mut parameter = |variable: &str| self.parameter_at(variable.strip_prefix("target.")?);
        let header = |(name, value): (&String, &String)| {
            let value = Value::from(value.as_str());
            match template::expand(&value, &mut parameter) {
                Ok(Value::String(text)) => Ok((name.clone(), text)),
                Ok(other) => Ok((name.clone(), other.to_string())),
                Err(error) => Err(self.missing_parameter(&value).unwrap_or_else(|| error.to_string())),
            }
        };
        let headers: Result<Vec<_>, String> = upgrade.headers.iter().map(header).collect();
        let offer = upgrade.offer().map(|offer| (OFFER.to_owned(), offer));
        Ok(headers?.into_iter().chain(offer).collect())
    }

    /// Whether there are parameters that nobody has given.
    #[must_use]
    pub fn lacks_parameters(&self) -> bool {
        self.extension.parameters.values().any(|one| one.default.is_none())
    }

    /// The first parameter that these templates need and nobody gives: a sentence that says so.
    #[must_use]
    pub fn missing_parameter(&self, templates: &Value) -> Option<String> {
        let names = template::names(templates);
        let mut needed = names.iter().filter_map(|name| parameter_of(name));
        let (name, known) = needed.find_map(|name| {
            self.extension.parameters.get_key_value(name).filter(|(_, one)| one.default.is_none())
        })?;
        let about = &known.about;
        Some(format!("it needs `{name}` of the target ({about}), which no `parameters` of a target gives"))
    }

    /// Sets a parameter, as a target has it, whichever dialect is spoken.
    pub fn set_parameter(&mut self, name: &str, value: Value) {
        if let Some(known) = self.extension.parameters.get_mut(name) {
            known.default = Some(value.clone());
        }
        self.dialects_mut().for_each(|one| one.set_parameter(name, value.clone()));
    }

    /// Why a variable of a template is no parameter of this protocol, if it looks like one.
    #[must_use]
    pub fn unknown_parameter(&self, variable: &str) -> Option<Diagnostic> {
        let name = variable.strip_prefix("target").filter(|rest| rest.is_empty() || rest.starts_with('.'))?;
        let name = name.strip_prefix('.').unwrap_or_default();
        let known = &self.extension.parameters;
        let root = name.split('.').next().unwrap_or_default();
        if known.contains_key(root) {
            return None;
        }
        let unknown = Diagnostic::new(format!(
            "there is no parameter `{root}`: the protocol's `parameters` declare them"
        ));
        Some(unknown.suggest(root, known.keys().map(String::as_str)))
    }
}

/// `NAME` of `target.NAME` and `target.NAME.MEMBER`.
fn parameter_of(variable: &str) -> Option<&str> {
    variable.strip_prefix("target.")?.split('.').next()
}

/// What `upgrade` and `parameters` say must be possible, and have an effect.
pub(super) fn verify_connection(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    for name in protocol.extension.parameters.keys().filter(|name| !is_word(name)) {
        let message = format!("`{name}` cannot be the name of a parameter: letters, digits, `_` and `-`");
        errors.push(Diagnostic::new(message).at(
            api,
            &format!("{PARAMETERS}/{}", escape_token(name)),
            Part::Key,
        ));
    }
    let Some(upgrade) = &protocol.extension.upgrade else { return };
    for (name, value) in &upgrade.headers {
        let at = format!("{UPGRADE}/headers/{}", escape_token(name));
        if name.eq_ignore_ascii_case(OFFER) {
            let message = Diagnostic::new("sub-protocols are offered by `protocols`");
            errors.push(message.at(api, &at, Part::Key).hint("protocols: [the-one-liked-best, another]"));
        } else if !is_token(name) {
            errors.push(Diagnostic::new(format!("`{name}` is not a valid header")).at(api, &at, Part::Key));
        }
        if value.chars().any(char::is_control) {
            errors.push(Diagnostic::new("a header's value has no control characters").at(
                api,
                &at,
                Part::Value,
            ));
        }
        for variable in template::names(&Value::from(value.as_str())) {
            let unknown = protocol.unknown_parameter(&variable).or_else(|| {
                let message = format!("undefined variable `{variable}`");
                let hint = "a header of the protocol can have parameters of the target: `{{target.NAME}}`";
                (parameter_of(&variable).is_none()).then(|| Diagnostic::new(message).hint(hint))
            });
            errors.0.extend(unknown.map(|one| one.at(api, &at, Part::Value)));
        }
    }
    for (index, name) in upgrade.protocols.iter().enumerate() {
        let at = format!("{UPGRADE}/protocols/{index}");
        if !is_token(name) {
            errors.push(Diagnostic::new(format!("`{name}` is not a valid sub-protocol")).at(
                api,
                &at,
                Part::Value,
            ));
        } else if upgrade.protocols[..index].contains(name) {
            errors.push(Diagnostic::new(format!("`{name}` is offered twice")).at(api, &at, Part::Value));
        }
    }
    if let Some(Some(name)) = upgrade.selected()
        && !upgrade.protocols.iter().any(|one| one == name)
    {
        let message = format!("`{name}` is not offered, so that no server can select it");
        let offered = upgrade.protocols.iter().map(String::as_str).chain([NONE]);
        let error = Diagnostic::new(message).suggest(name, offered);
        errors.push(error.at(api, &format!("{UPGRADE}/selects"), Part::Value));
    }
    if upgrade.protocols.is_empty() && upgrade.selects.is_none() && !upgrade.covers.is_empty() {
        let message = "`covers` has no effect: no sub-protocol is offered";
        let hint = "protocols: [NAME], or selects: none";
        errors.push(Diagnostic::new(message).at(api, &format!("{UPGRADE}/covers"), Part::Key).hint(hint));
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || "_-".contains(one))
}
