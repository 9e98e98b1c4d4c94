//! `[[target.NAME.mutants]]`: servers of one's own with a defect each.

use std::path::Path;
use std::sync::Arc;

use crate::source::{Diagnostic, Document, Part};
use crate::target::{Spec, SpecError, TargetConfig};

/// What is wrong with a mutant.
pub(super) struct Mistake {
    message: String,
    hint: String,
    /// JSON Pointer below the list of mutants.
    at: String,
}

impl Mistake {
    fn new(message: impl Into<String>, hint: impl Into<String>, at: String) -> Self {
        Self { message: message.into(), hint: hint.into(), at }
    }

    /// The same at its place in the file.
    pub fn diagnostic(self, document: &Document, at: &dyn Fn(&str) -> String) -> Diagnostic {
        let diagnostic = Diagnostic::new(self.message).at(document, &at(&self.at), Part::Value);
        if self.hint.is_empty() { diagnostic } else { diagnostic.hint(self.hint) }
    }
}

/// What is to be launched for each mutant of a target.
///
/// # Errors
/// All that is wrong with them.
pub(super) fn specs(
    name: &str,
    target: &TargetConfig,
    own: &Spec,
    folder: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Arc<Spec>>, Vec<Mistake>> {
    let (mut specs, mut mistakes) = (Vec::new(), Vec::new());
    for (index, mutant) in target.mutants.iter().enumerate() {
        let at = format!("/{index}");
        let before = mistakes.len();
        if mutant.name.is_empty() || target.mutants[..index].iter().any(|other| other.name == mutant.name) {
            let message = "a mutant has a name of its own";
            mistakes.push(Mistake::new(message, "name = \"answers-twice\"", format!("{at}/name")));
        }
        if mutant.breaks.is_empty() {
            let message = "a mutant breaks requirements: without them nothing could be found";
            mistakes.push(Mistake::new(message, "breaks = [\"CH-2\"]", format!("{at}/breaks")));
        }
        if mutant.env.is_empty() && mutant.command.is_empty() {
            let message = "a mutant differs from the target";
            let hint = "env = { DEFECT = \"answers-twice\" }, or another `command`";
            mistakes.push(Mistake::new(message, hint, at.clone()));
        }
        if target.command.is_empty() && target.process.is_empty() {
            let message = "a mutant is launched, and the target has no `command`";
            mistakes.push(Mistake::new(message, "", at.clone()));
        } else if !target.process.is_empty() && !mutant.command.is_empty() {
            let message = "the target has several processes, of which this replaces none";
            mistakes.push(Mistake::new(message, "`env` is for all of them", format!("{at}/command")));
        }
        if mistakes.len() > before {
            continue;
        }
        match Spec::new(name, &mutant.of(target), folder, false, environment) {
            // A signal that ends the program ends them all.
            Ok(spec) => specs.push(Arc::new(Spec { groups: Arc::clone(&own.groups), ..spec })),
            Err(wrong) => mistakes.extend(wrong.into_iter().map(|SpecError { message, hint, .. }| Mistake {
                message,
                hint,
                at: at.clone(),
            })),
        }
    }
    if mistakes.is_empty() { Ok(specs) } else { Err(mistakes) }
}
