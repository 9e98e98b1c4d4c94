//! Advice on YAML that is none: what people get wrong most often.

/// What to do about a syntax error in this line (from 1).
pub(super) fn advice(message: &str, text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let index = line.checked_sub(1)?;
    let own = lines.get(index)?;
    // What a line leaves open is noticed in the next.
    let near = [Some(own), index.checked_sub(1).and_then(|before| lines.get(before))];
    if let Some(template) = near.iter().flatten().find_map(|line| bare_template(line)) {
        return Some(format!("a template needs quotes: \"{template}\""));
    }
    if let Some(key) = duplicate(message) {
        return Some(match first_of(key, &lines, index) {
            Some(first) => format!("the first one is in line {}: leave one of the two", first + 1),
            None => "leave one of the two".to_owned(),
        });
    }
    if message.contains("tab") && near.iter().flatten().any(|line| line.contains('\t')) {
        return Some("YAML is indented by blanks, not by tabs".to_owned());
    }
    if message.contains("mapping values are not allowed") && own.matches(": ").count() > 1 {
        return Some("a text that contains `: ` needs quotes".to_owned());
    }
    let misplaced =
        ["did not find expected '-'", "did not find expected key", "mapping values are not allowed"];
    misplaced.iter().any(|known| message.contains(known)).then(|| indentation(&lines, index)).flatten()
}

/// What the parser means where a text is larger than it reads: `budget breached: Nodes { nodes: 250001 }`.
pub(super) fn too_much(message: &str) -> Option<String> {
    let what = message.strip_prefix("budget breached: ")?;
    let kind = what.split([' ', '{', '(']).next().unwrap_or_default().to_lowercase();
    let count: String = what.chars().filter(char::is_ascii_digit).collect();
    Some(format!("the file is too large, or aliases make it so: {count} {kind} are over the limit"))
}

/// What a map has twice, as the parser says it.
fn duplicate(message: &str) -> Option<&str> {
    let rest = message
        .strip_prefix("duplicate mapping key: ")
        .or_else(|| message.strip_prefix("this map has the key `"))?;
    rest.split([',', '`']).next()
}

/// The same in our own words.
pub(super) fn twice(message: &str) -> Option<String> {
    duplicate(message).map(|key| format!("this map has the key `{key}` twice"))
}

/// The line (from 0) that has a key for the first time, of a map whose second one stands in the line `index`.
fn first_of(key: &str, lines: &[&str], index: usize) -> Option<usize> {
    // A key stands behind the hyphens of an entry.
    let keyed = |line: &str| {
        let start = line.find(|c| !matches!(c, ' ' | '-'))?;
        let rest = line[start..].trim_start_matches(['"', '\'']).strip_prefix(key)?;
        rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':').then_some(start)
    };
    let Some(depth) = keyed(lines.get(index)?) else {
        return (lines[index].matches(key).count() > 1).then_some(index);
    };
    (0..index).rev().find(|above| keyed(lines[*above]) == Some(depth))
}

/// The first `{{…}}` outside of quotes.
fn bare_template(line: &str) -> Option<&str> {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '#' => return None,
            None if line[at..].starts_with("{{") => {
                let end = line[at..].find("}}").map_or(line.len(), |end| at + end + 2);
                return Some(&line[at..end]);
            }
            None => {}
        }
    }
    None
}

/// How far the line is indented, and how far those above it.
fn indentation(lines: &[&str], index: usize) -> Option<String> {
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_entry = |line: &str| line.trim_start().starts_with("- ");
    let own = depth(lines.get(index)?);
    let before = lines[..index].iter().rev().find(|line| is_entry(line)).map(|line| depth(line));
    if let Some(before) = before.filter(|before| is_entry(lines[index]) && *before != own) {
        return Some(format!(
            "entries of one list have the same indentation: this one is indented by {own} blanks, the one above it by {before}"
        ));
    }
    let mut above: Vec<usize> = lines[..index]
        .iter()
        .rev()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .take(8)
        // The keys of an entry stand behind its hyphen.
        .flat_map(|line| {
            let hyphen = is_entry(line).then(|| depth(line) + 2);
            [Some(depth(line)), hyphen]
        })
        .flatten()
        .collect();
    above.sort_unstable();
    above.dedup();
    let above: Vec<String> = above.iter().map(usize::to_string).collect();
    (!above.is_empty()).then(|| {
        format!(
            "check the indentation: this line is indented by {own} blanks, keys and entries above it by {}",
            above.join(" or ")
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::source::Document;

    #[test]
    fn what_is_too_much_is_said_so() {
        let text = format!("a: &a [{}]\nb: [{}]\n", vec!["x"; 1000].join(","), vec!["*a"; 1000].join(","));
        let told = Document::parse("t.yaml", &text).expect_err("a bomb").to_string();
        assert!(told.contains("the file is too large, or aliases make it so: 250001 nodes"), "{told}");
    }

    #[test]
    fn advice_fits_the_mistake() {
        for (text, expected) in [
            ("a: {{cue}}\n", "a template needs quotes: \"{{cue}}\""),
            ("a: { b: 1, c: {{cue.x}} }\n", "a template needs quotes: \"{{cue.x}}\""),
            ("a:\n\t- b: 1\n", "indented by blanks"),
            ("a:\n  - b: 1\n    c: 2\n    b: 3\n", "the first one is in line 2"),
            ("a: { bc: 1, bc: 3 }\n", "the first one is in line 1"),
            ("a: 1\na: 2\n", "this map has the key `a` twice"),
            ("a:\n  - b: x: y\n", "contains `: ` needs quotes"),
            ("a:\n  - b: x\n   c: y\n", "by 3 blanks, keys and entries above it by 0 or 2 or 4"),
            ("a:\n  b: x\n   c: y\n", "by 3 blanks"),
            (
                "a:\n  - b: x\n    c:\n    - d: 1\n      - e: 1\n",
                "is indented by 6 blanks, the one above it by 4",
            ),
        ] {
            let error = Document::parse("t.yaml", text).expect_err(text).to_string();
            assert!(error.contains(expected), "{expected} is not in\n{error}");
        }
    }
}
