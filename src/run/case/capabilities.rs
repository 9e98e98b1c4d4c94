//! What a case needs of the server beyond the protocol's core.

use crate::protocol::Matcher;
use crate::protocol::extension::Offered;
use crate::run::case::context::CaseContext;
use crate::source::Diagnostics;

/// Capabilities that the case needs and that the server has not announced yet. Judged once, after the first opening.
#[derive(Default)]
pub(crate) struct Capabilities {
    needed: Vec<(String, Matcher)>,
}

impl Capabilities {
    /// # Errors
    /// A pattern that does not compile (found when the protocol is loaded, too).
    pub fn of(cx: &CaseContext<'_>) -> Result<Self, Diagnostics> {
        let mut needed = Vec::new();
        for name in &cx.loaded.case.needs {
            let known = cx.protocol.extension.capabilities.get(name);
            if let Some(pattern) = known.and_then(|known| known.announced.as_ref()) {
                needed.push((name.clone(), Matcher::new(pattern, &cx.protocol)?));
            }
        }
        Ok(Self { needed })
    }

    /// Notes that a message announces what it announces.
    pub fn announced(&mut self, is_shown: impl Fn(&Matcher) -> bool) {
        self.needed.retain(|(_, on)| !is_shown(on));
    }

    /// Why the case is not applicable, if the server does not offer what it needs.
    pub fn missing(&self, cx: &CaseContext<'_>) -> Option<String> {
        let known = &cx.protocol.extension.capabilities;
        for need in &cx.loaded.case.needs {
            let Some(capability) = known.get(need) else { continue };
            let offered = match capability.offered {
                Offered::Yes => true,
                Offered::Fixture => cx.run.is_reference,
                Offered::No => false,
            };
            if capability.announced.is_none() && !offered {
                return Some(format!("`{need}` is offered only if an overlay says so: {}", capability.about));
            }
        }
        let (need, _) = self.needed.first()?;
        let about = known.get(need).map_or("", |known| &known.about);
        Some(format!("the server does not offer `{need}`: {about}"))
    }
}
