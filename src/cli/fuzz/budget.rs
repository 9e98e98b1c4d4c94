//! Lengths of time on the command line of `fuzz` and `explore`.

use std::time::Duration;

/// A length of time: `500ms`, `90s`, `10m`, `2h`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli) struct Budget(pub Duration);

impl std::str::FromStr for Budget {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a length of time; write `90s`, `10m` or `2h`");
        let (number, scale) = if let Some(number) = text.strip_suffix("ms") {
            (number, 0.001)
        } else {
            let scale = match text.chars().last() {
                Some('s') => 1.0,
                Some('m') => 60.0,
                Some('h') => 3600.0,
                _ => return Err(wrong()),
            };
            (&text[..text.len() - 1], scale)
        };
        let seconds = number.parse::<f64>().ok().map(|number| number * scale);
        let seconds = seconds.filter(|seconds| (0.001..=604_800.0).contains(seconds));
        seconds.map(|seconds| Self(Duration::from_secs_f64(seconds))).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read() {
        for (text, seconds) in [("90s", 90.0), ("10m", 600.0), ("0.5h", 1800.0), ("250ms", 0.25)] {
            assert_eq!(text.parse(), Ok(Budget(Duration::from_secs_f64(seconds))), "{text}");
        }
        for bad in ["", "s", "10", "-1s", "1d", "nans", "infs", "1é", "99999h"] {
            assert!(bad.parse::<Budget>().is_err(), "{bad}");
        }
    }
}
