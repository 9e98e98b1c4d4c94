//! Sentences without what differs from one run to the next.

/// A sentence without the values in it: quoted text and numbers are replaced.
pub fn without_values(text: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => {
                quote = None;
                out.push_str("\u{2026}\"");
            }
            Some(_) => {}
            None if c == '"' || c == '`' => {
                quote = Some(c);
                out.push('"');
            }
            None if c.is_ascii_digit() => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            None => out.push(c),
        }
    }
    out.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced() {
        assert_eq!(
            without_values("`a` came 12 times, \"x y\" 3.5"),
            "\"\u{2026}\" came # times, \"\u{2026}\" #.#"
        );
    }
}
