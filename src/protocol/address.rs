//! A channel's address with a parameter in it, `/chat/{room}`, and the URLs of a server that has it.

fn place(parameter: &str) -> String {
    format!("{{{parameter}}}")
}

/// What stands for the parameter in a URL.
pub(super) fn value_in<'u>(address: &str, parameter: &str, url: &'u str) -> Option<&'u str> {
    let (before, after) = address.split_once(&place(parameter))?;
    let (_, rest) = url.rsplit_once(before)?;
    let value = match after {
        "" => rest.split(['/', '?', '#']).next()?,
        after => rest.split_once(after)?.0,
    };
    (!value.is_empty()).then_some(value)
}

/// The URL with a place for the parameter: as it is, or with the part of the address that it leaves out. The place
/// itself is the error.
pub(super) fn complete(address: &str, parameter: &str, url: &str) -> Result<String, String> {
    let place = place(parameter);
    if url.contains(&place) {
        return Ok(url.to_owned());
    }
    let bare = url.trim_end_matches('/');
    let host = bare.find("://").map_or(0, |at| at + 3);
    let path = bare[host..].find('/').map_or("", |at| &bare[host + at..]);
    match address.strip_prefix(path).filter(|rest| rest.starts_with('/')) {
        Some(rest) => Ok(format!("{bare}{rest}")),
        None => Err(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_found_in_a_url() {
        for (address, url, expected) in [
            ("/ws/{id}", "ws://ws/ws/a-1", Some("a-1")),
            ("/ws/{id}", "ws://h:1/api/ws/a-1?x=2", Some("a-1")),
            ("/s/{id}/ws", "ws://h/s/a-1/ws", Some("a-1")),
            ("/ws/{id}", "ws://h/ws/", None),
            ("/ws/{id}", "ws://h/other", None),
        ] {
            assert_eq!(value_in(address, "id", url), expected, "{url}");
        }
    }

    #[test]
    fn a_url_is_completed() {
        for (url, expected) in [
            ("ws://h:1", Ok("ws://h:1/ws/{id}")),
            ("ws://h:1/ws/", Ok("ws://h:1/ws/{id}")),
            ("ws://h/api/ws/{id}", Ok("ws://h/api/ws/{id}")),
            ("ws://h/ws/mine", Err("{id}")),
            ("ws://h/w", Err("{id}")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(complete("/ws/{id}", "id", url), expected, "{url}");
        }
    }
}
