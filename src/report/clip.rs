//! Texts within bounds, whatever a server sends.

use std::borrow::Cow;

/// Characters of a sentence.
const SENTENCE: usize = 1_000;

/// The beginning of a text, with what is missing counted.
pub(crate) fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most) else { return Cow::Borrowed(text) };
    Cow::Owned(format!("{}… (+{} bytes)", &text[..end], text.len() - end))
}

/// A sentence, a title, a command.
pub(crate) fn sentence(text: &str) -> Cow<'_, str> {
    clipped(text, SENTENCE)
}

/// A name within so many characters: its end is left out.
pub(crate) fn name(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().take(most.saturating_sub(1)).chain(['…']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(clipped("äöü", 3), "äöü");
        assert_eq!(clipped("äöü", 2), "äö… (+2 bytes)");
        assert_eq!((name("äöü", 3), name("äöüß", 3)), ("äöü".into(), "äö…".into()));
    }
}
