//! Headers of the upgrade request as the command line gives them. Their values are secrets.

use super::{Failure, usage};
use crate::text::is_token;

/// Before the name of a variable that has a value.
pub(super) const ENVIRONMENT: &str = "env:";

/// A value as it is given, or that of the variable that it names. `what`: as messages call it.
pub(super) fn of_environment(what: &str, value: &str) -> Result<String, Failure> {
    let Some(variable) = value.strip_prefix(ENVIRONMENT) else { return Ok(value.to_owned()) };
    std::env::var(variable).map_err(|_| {
        let hint = format!("export {variable} before the run");
        usage(format!("{what}: the environment variable {variable} is not set"), &hint)
    })
}

/// `Name: value`, or `Name: env:VARIABLE`.
pub(super) fn parse(text: &str) -> Result<(String, String), Failure> {
    const HINT: &str = "write `Name: value`, or `Name: env:VARIABLE` to take the value from the environment";
    let Some((name, value)) = text.split_once(':') else {
        return Err(usage("a --header has no colon", HINT));
    };
    let name = name.trim();
    if !is_token(name) {
        return Err(usage(format!("--header: `{name}` is not a header name"), HINT));
    }
    let value = of_environment(&format!("--header {name}"), value.trim())?;
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(usage(
            format!("--header {name}: the value has a control character"),
            "is there a line end in it?",
        ));
    }
    Ok((name.to_owned(), value))
}

/// The header as it may be shown, to be given again: a value from the environment by the variable's name, and so any other.
pub(super) fn redacted(text: &str) -> String {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let (name, value) = (name.trim(), value.trim());
    if value.starts_with(ENVIRONMENT) {
        return format!("{name}: {value}");
    }
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{name}: {ENVIRONMENT}{}", name.chars().map(letter).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        assert_eq!(parse("X-A:  b c ").ok(), Some(("X-A".into(), "b c".into())));
        assert_eq!(parse("X-A: a:b").ok(), Some(("X-A".into(), "a:b".into())));
        for bad in ["nonsense", ": x", "a b: c", "X: env:FRAMEPROOF_SURELY_UNSET", "X: a\nb"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_not_shown() {
        assert_eq!(redacted("X-Api-Key: Bearer abc"), "X-Api-Key: env:X_API_KEY");
        assert_eq!(redacted("Authorization:  env:TOKEN"), "Authorization: env:TOKEN");
    }
}
