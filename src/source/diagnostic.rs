//! Errors in what a person wrote, shown as rustc shows them.

use super::Document;

/// One error.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The text and the byte span that it is about.
    pub place: Option<(Document, super::Span)>,
    /// A few words beside the caret.
    pub label: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// One or more errors.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostic {
    /// An error that has no place in a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, label: None, hint: None }
    }

    /// Points at the value (or key) at `pointer` of `document`.
    #[must_use]
    pub fn at(mut self, document: &Document, pointer: &str, part: super::Part) -> Self {
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
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl Diagnostics {
    /// All errors as text for a terminal (`color`) or a pipe, each with file, line, column, source line and
    /// caret. Control characters of the source are made visible.
    pub fn render(&self, _color: bool) -> String {
        todo!()
    }
}

impl std::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// The known word nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'k>(_word: &str, _known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    todo!()
}
