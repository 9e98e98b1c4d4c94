//! What a case needs of the server beyond the protocol's core.

use crate::protocol::Matcher;
use crate::protocol::extension::Offered;
use crate::run::case::context::CaseContext;
use crate::run::case::interpreter::{Runner, Stop};
use crate::source::Diagnostics;

/// Capabilities that the case needs and that the server has not announced yet. Judged once, after the first opening.
#[derive(Default)]
pub(crate) struct Capabilities {
    pub needed: Vec<(String, Matcher)>,
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
}

impl Runner<'_> {
    /// Whether the server offers what the case needs. Judged once, by the messages of the first opening.
    pub(crate) fn needs(&mut self, client: &str) -> Result<(), Stop> {
        if self.conns.first_client.as_deref() != Some(client) {
            return Ok(());
        }
        for need in &self.cx.loaded.case.needs {
            let Some(capability) = self.cx.protocol.extension.capabilities.get(need) else { continue };
            let offered = match capability.offered {
                Offered::Yes => true,
                Offered::Fixture => self.cx.run.is_reference,
                Offered::No => false,
            };
            if capability.announced.is_none() && !offered {
                let reason = format!("`{need}` is offered if an overlay says so: {}", capability.about);
                return Err(Stop::NotApplicable(reason));
            }
        }
        let Some((need, _)) = self.capabilities.needed.first() else { return Ok(()) };
        let about = self.cx.protocol.extension.capabilities.get(need).map_or("", |known| &known.about);
        Err(Stop::NotApplicable(format!("the server does not offer `{need}`: {about}")))
    }
}
