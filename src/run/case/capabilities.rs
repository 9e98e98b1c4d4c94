//! What a case needs of the server beyond the protocol's core.

use crate::protocol::extension::{Offered, TargetTool};
use crate::protocol::{ISOLATION, Matcher, Protocol, Roles};
use crate::run::case::context::CaseContext;
use crate::scenario::turn;

/// Capabilities that the case needs and that the server has not announced yet. Judged once, after the first opening.
#[derive(Default)]
pub(crate) struct Capabilities {
    needed: Vec<String>,
}

impl Capabilities {
    pub fn of(cx: &CaseContext<'_>) -> Self {
        let announced = &cx.protocol.roles().capabilities;
        let needed = cx.loaded.case.needs.iter().filter(|name| announced.contains_key(*name));
        Self { needed: needed.cloned().collect() }
    }

    /// Notes that a message announces what it announces.
    pub fn announced(&mut self, roles: &Roles, is_shown: impl Fn(&Matcher) -> bool) {
        self.needed.retain(|name| !roles.capabilities.get(name).is_some_and(&is_shown));
    }

    /// Why the case is not applicable, if the server does not offer what it needs.
    pub fn missing(&self, cx: &CaseContext<'_>) -> Option<String> {
        let tools = &cx.protocol.extension.tools;
        let is_absent =
            |class: &String| tools.get(class).is_some_and(|tool| tool.target == TargetTool::Absent);
        if let Some(class) = turn::classes(cx.loaded.case.all_turns()).iter().find(|class| is_absent(class)) {
            return Some(format!("the target has no tool of the class `{class}`"));
        }
        if cx.protocol.extension.session.is_single && cx.loaded.case.sessions(&cx.protocol) > 1 {
            return cx.protocol.lacks_isolation().map(|why| format!("it needs two sessions: {why}"));
        }
        let known = &cx.protocol.extension.capabilities;
        for need in &cx.loaded.case.needs {
            let Some(capability) = known.get(need) else { continue };
            if need == ISOLATION && cx.protocol.extension.session.is_single {
                return cx.protocol.lacks_isolation().map(str::to_owned);
            }
            let offered = match capability.offered {
                Offered::Yes => true,
                Offered::Fixture => cx.run.is_reference,
                Offered::No => false,
            };
            if capability.announced.is_none() && !offered {
                let way = match capability.offered {
                    Offered::Fixture => "is not announced: `--offer` says that the server has it",
                    _ if cx.run.bare.as_ref().is_some_and(|bare| offers(bare, need)) => {
                        "is not offered, as the overlay says"
                    }
                    _ => "is offered only if an overlay says so",
                };
                return Some(format!("`{need}` {way}: {}", capability.about));
            }
        }
        let need = self.needed.first()?;
        let about = known.get(need).map_or("", |known| &known.about);
        Some(format!("the server does not offer `{need}`: {about}"))
    }
}

/// Whether a protocol says that its servers offer a capability.
fn offers(protocol: &Protocol, name: &str) -> bool {
    protocol.extension.capabilities.get(name).is_some_and(|known| known.offered != Offered::No)
}
