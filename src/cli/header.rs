//! Headers of the upgrade request as the command line gives them. Their values are secrets.

use super::{Failure, usage};

/// `Name: value`, or `Name: env:VARIABLE`.
pub(super) fn parse(text: &str) -> Result<(String, String), Failure> {
    const HINT: &str = "write `Name: value`, or `Name: env:VARIABLE` to take the value from the environment";
    let Some((name, value)) = text.split_once(':') else {
        return Err(usage("a --header has no colon", HINT));
    };
    let name = name.trim();
    if name.is_empty()
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    {
        return Err(usage(format!("--header: `{name}` is not a header name"), HINT));
    }
    let value = match value.trim().strip_prefix("env:") {
        Some(variable) => std::env::var(variable).map_err(|_| {
            let hint = format!("export {variable} before the run");
            usage(format!("--header {name}: the environment variable {variable} is not set"), &hint)
        })?,
        None => value.trim().to_owned(),
    };
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(usage(
            format!("--header {name}: the value has a control character"),
            "is there a line end in it?",
        ));
    }
    Ok((name.to_owned(), value))
}

/// The header as it may be shown: a value from the environment by the variable's name, any other not at all.
pub(super) fn redacted(text: &str) -> String {
    match text.split_once(':') {
        Some((name, value)) if value.trim().starts_with("env:") => {
            format!("{}: {}", name.trim(), value.trim())
        }
        Some((name, _)) => format!("{}: …", name.trim()),
        None => "…".to_owned(),
    }
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
        assert_eq!(redacted("Authorization: Bearer abc"), "Authorization: …");
        assert_eq!(redacted("Authorization: env:TOKEN"), "Authorization: env:TOKEN");
        assert_eq!(redacted("secret"), "…");
    }
}
