//! Errors in what a person wrote, shown as rustc shows them.

use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::{Document, Part, Span};
use crate::text::safe;

/// Most errors that are shown; more are counted.
const MAX_SHOWN: usize = 50;

/// One error.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The text and the byte span that it is about.
    pub place: Option<(Document, Span)>,
    /// A few words beside the caret.
    pub label: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// It is worth knowing, and no error.
    pub note: bool,
}

/// One or more errors.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostic {
    /// An error that has no place in a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, label: None, hint: None, note: false }
    }

    /// Something worth knowing that is no error.
    pub fn note(message: impl Into<String>) -> Self {
        Self { note: true, ..Self::new(message) }
    }

    /// Points at the value (or key) at `pointer` of `document`.
    #[must_use]
    pub fn at(mut self, document: &Document, pointer: &str, part: Part) -> Self {
        let document = document.writer(pointer);
        self.place = Some((document.clone(), document.span(pointer, part)));
        self
    }

    /// Adds a few words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the nearest known word as advice, or the list of known words where it is short.
    #[must_use]
    pub fn suggest<'k>(self, word: &str, known: impl IntoIterator<Item = &'k str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        match nearest(word, known.iter().copied()) {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None if !known.is_empty() && known.len() <= 24 => self.hint(all_known(known)),
            None => self,
        }
    }

    /// `text`: the document's, as [`safe::aligned`] shows it.
    fn render(&self, renderer: &Renderer, text: &str) -> String {
        let message = safe::terminal(&self.message);
        let level = if self.note { Level::NOTE } else { Level::ERROR };
        let title = level.primary_title(message.as_ref());
        let mut groups = Vec::new();
        let path;
        let label;
        let mut group = match &self.place {
            Some((document, span)) => {
                path = safe::terminal(&document.name);
                label = safe::terminal(self.label.as_deref().unwrap_or_default());
                let boundary = |at: &usize| text.is_char_boundary(*at);
                let start = (0..=span.start.min(text.len())).rev().find(boundary).unwrap_or(0);
                let end = (span.end.clamp(start, text.len())..=text.len()).find(boundary).unwrap_or(start);
                let annotation = AnnotationKind::Primary.span(start..end).label(label.as_ref());
                title.element(Snippet::source(text).path(path.as_ref()).annotation(annotation))
            }
            None => annotate_snippets::Group::with_title(title),
        };
        let hint = self.hint.as_deref().map(safe::terminal);
        if let Some(hint) = &hint {
            group = group.element(Level::HELP.message(hint.as_ref()));
        }
        groups.push(group);
        renderer.render(&groups)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl Diagnostics {
    /// `Ok(value)` where there are none, else `Err(self)`.
    ///
    /// # Errors
    /// The diagnostics themselves.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Adds an error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Keeps the value of a result, or its errors.
    pub fn take<T>(&mut self, result: Result<T, Self>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(errors) => {
                self.0.extend(errors.0);
                None
            }
        }
    }

    /// All errors as text for a terminal (`color`) or a pipe, each with file, line, column, source line and
    /// caret. What a terminal acts on is made visible. Of very many, the first 50 are shown.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        // Errors of one file stand together: its text is made visible once.
        let mut last: Option<(&Arc<str>, String)> = None;
        let mut parts = Vec::new();
        for one in self.0.iter().take(MAX_SHOWN) {
            if let Some((document, _)) = &one.place
                && last.as_ref().is_none_or(|(text, _)| !Arc::ptr_eq(text, &document.text))
            {
                last = Some((&document.text, safe::aligned(&document.text)));
            }
            parts.push(one.render(&renderer, last.as_ref().map_or("", |(_, text)| text)));
        }
        if let more @ 1.. = self.0.len().saturating_sub(MAX_SHOWN) {
            parts.push(format!("and {more} more errors, which are not shown"));
        }
        parts.join("\n\n")
    }
}

impl std::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// The known words that were perhaps meant, nearest first, at most `most`: those near in spelling, and those of which it is
/// a part.
pub fn nearest_few<'k>(word: &str, known: impl IntoIterator<Item = &'k str>, most: usize) -> Vec<&'k str> {
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let near = distance(word, candidate);
            let part = word.len() >= 3 && candidate.contains(word);
            let apart = || candidate.chars().count() - word.chars().count();
            near.or_else(|| part.then(apart)).map(|distance| (distance, candidate))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// How many edits lie between two words, if they are few. What differs by its length alone is not measured: that would take
/// time by the square of it.
fn distance(word: &str, candidate: &str) -> Option<usize> {
    let length = candidate.chars().count();
    let most = length.max(3) / 3;
    let is_near = word.chars().take(length + most + 1).count().abs_diff(length) <= most;
    let distance = is_near.then(|| strsim::damerau_levenshtein(word, candidate));
    distance.filter(|distance| *distance <= most)
}

/// The known word nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .filter_map(|candidate| Some((distance(word, candidate)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Advice that names every known word.
pub(crate) fn all_known<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let names: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
    format!("known are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_place() {
        let document = Document::parse("case.yaml", "steps:\n  - expct: welcome\n").expect("valid");
        let text = Diagnostics::from(
            Diagnostic::new("unknown field `expct`")
                .at(&document, "/steps/0/expct", Part::Key)
                .suggest("expct", ["expect", "send"]),
        )
        .to_string();
        for part in [
            "error: unknown field `expct`",
            "case.yaml:2:5",
            "- expct: welcome",
            "^^^^^",
            "did you mean `expect`?",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn shows_nothing_that_a_terminal_acts_on() {
        let text = "a: \"\u{feff}\u{202e}\u{e0001}\u{ad}##[error]\"\nb: here\n";
        let document = Document::parse("case.yaml", text).expect("valid");
        let one = |at| Diagnostics::from(Diagnostic::new("a\u{feff} b\u{1b}").at(&document, at, Part::Value));
        for colour in [false, true] {
            let shown = one("/a").render(colour);
            let treacherous = ['\u{feff}', '\u{202e}', '\u{e0001}', '\u{ad}'];
            assert!(!shown.contains(treacherous) && !shown.contains("##["), "{shown}");
            assert!(shown.contains("a\\u{feff} b\\u{1b}"), "{shown}");
        }
        let below = one("/b").to_string();
        assert!(below.contains("2 | b: here\n") && below.contains("  |    ^^^^"), "{below}");
    }

    #[test]
    fn of_very_many_errors_the_first_are_shown() {
        let document = Document::parse("case.yaml", "a: 1\n").expect("valid");
        let one = |number| Diagnostic::new(format!("error {number}.")).at(&document, "/a", Part::Key);
        let shown = |count| Diagnostics((0..count).map(one).collect()).to_string();
        assert!(!shown(50).contains("more errors"));
        let text = shown(5000);
        assert!(text.contains("error 49.") && !text.contains("error 50."), "{text}");
        assert!(text.ends_with("and 4950 more errors, which are not shown"), "{text}");
    }

    #[test]
    fn suggests_only_what_is_near() {
        assert_eq!(nearest("expct", ["send", "expect"]), Some("expect"));
        assert_eq!(nearest("xyz", ["send", "expect"]), None);
    }
}
