//! Text cut into pieces, for styles that stream it otherwise than the plain server.

/// Each chunk in pieces of one to three characters, or of a `parts`th of the chunk where that is more.
pub(in crate::reference) fn small(chunks: &[String], parts: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    for chunk in chunks {
        let least = chunk.chars().count() / parts;
        cut(chunk, &mut pieces, |index| (1 + index % 3).max(least));
    }
    pieces
}

/// A text in pieces of `size` characters.
pub(in crate::reference) fn sized(text: &str, size: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    cut(text, &mut pieces, |_| size);
    pieces
}

/// Adds the pieces of a text. `size`: of the piece of this number.
fn cut(text: &str, pieces: &mut Vec<String>, size: impl Fn(usize) -> usize) {
    let letters: Vec<char> = text.chars().collect();
    let mut rest = letters.as_slice();
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(size(pieces.len()).clamp(1, rest.len()));
        pieces.push(piece.iter().collect());
        rest = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_and_lose_nothing() {
        let chunks = ["приветы".to_owned(), "ab".to_owned()];
        assert_eq!(small(&chunks, 8), ["п", "ри", "вет", "ы", "ab"]);
        let long = vec!["x".repeat(81)];
        assert!(small(&long, 8).iter().all(|piece| (1..=10).contains(&piece.len())));
        assert_eq!(small(&long, 8).concat(), long.concat());
    }

    #[test]
    fn pieces_have_the_size_that_is_asked_for() {
        assert_eq!(sized("abcde", 2), ["ab", "cd", "e"]);
        assert!(sized("", 2).is_empty());
    }
}
