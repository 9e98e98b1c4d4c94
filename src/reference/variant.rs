//! Which variant of a reference server: its fault, when that strikes, its styles, and what becomes of its messages.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::engine::Trigger;
use super::{StartError, Style, styles};
use crate::source::nearest;
use crate::wire::relay::Mutation;

/// Which variant of a reference server.
#[derive(Debug, Clone, Default)]
pub struct Variant {
    /// Its fault, `NAME` or `NAME@TRIGGER`; none: the correct server.
    pub fault: Option<String>,
    /// Becomes true when a moment of the trigger has come.
    pub met: Arc<AtomicBool>,
    /// Its legal styles.
    pub styles: Vec<String>,
    /// What the styles' chance begins with.
    pub seed: u64,
    /// What becomes of its messages on their way.
    pub mutation: Option<Arc<Mutation>>,
}

/// The silence that ends a turn of the reference server: it says what it has to say at once. Its own writes take
/// well under a millisecond, and the scenarios' pauses are longer than this.
const QUIET: Duration = Duration::from_millis(10);
/// The same where a style may hold it up.
const QUIET_UNDER_STYLES: Duration = Duration::from_millis(250);

impl Variant {
    /// How long a silence must last that stands for the end of a turn.
    pub fn quiet(&self) -> Duration {
        if self.styles.is_empty() { QUIET } else { QUIET_UNDER_STYLES }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reference server")?;
        if let Some(fault) = &self.fault {
            write!(f, " with fault {fault}")?;
        }
        match self.styles.as_slice() {
            [] => Ok(()),
            [style] => write!(f, " in style {style}"),
            styles => write!(f, " in styles {}", styles.join(", ")),
        }
    }
}

/// What `NAME@TRIGGER` says, or `NAME`.
pub(super) fn fault_and_trigger(text: &str) -> Result<(&str, Trigger), StartError> {
    let Some((fault, name)) = text.split_once('@') else { return Ok((text, Trigger::Always)) };
    let near = nearest(name, Trigger::ALL.iter().map(|(_, known, _)| *known));
    let trigger = Trigger::named(name);
    Ok((fault, trigger.ok_or_else(|| StartError::UnknownTrigger { name: name.to_owned(), near })?))
}

/// The styles of these names.
pub(super) fn chosen(protocol: &str, names: &[String]) -> Result<Vec<Style>, StartError> {
    let all = styles(protocol);
    let mut chosen: Vec<Style> = Vec::new();
    for name in names {
        let Some(style) = all.iter().find(|style| style.name == name) else {
            let near = nearest(name, all.iter().map(|style| style.name));
            return Err(StartError::UnknownStyle { name: name.clone(), near });
        };
        if let Some(other) = chosen.iter().find(|other| other.name != style.name && !other.goes_with(style)) {
            return Err(StartError::ClashingStyles(other.name, style.name));
        }
        chosen.push(*style);
    }
    Ok(chosen)
}
