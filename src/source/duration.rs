//! Lengths of time as people write them.

use std::time::Duration;

/// A length of time as scenarios and configuration write it: `250ms`, `3s`, `1.5s`.
///
/// # Errors
/// What is expected instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err(format!("`{text}` is not a length of time; write `250ms` or `3s`")),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * scale);
    seconds
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is not a length of time; write `250ms` or `3s`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for bad in ["", "3", "s", "-1s", "1m", "1e99s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
