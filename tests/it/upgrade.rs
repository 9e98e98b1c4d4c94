//! What an `open` says of its upgrade, and what becomes of a refusal.

use std::fs;
use std::io::Write;
use std::net::TcpListener;

use crate::support::{frameproof, hand, text};

/// A server that answers each upgrade by what the function makes of the headers, in lower case: lines to add, or a refusal.
fn server(answer: fn(&str) -> Result<&'static str, &'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (headers, _) = hand::request(&stream);
            match answer(&headers.join("\n").to_ascii_lowercase()) {
                Ok(lines) => hand::accept(&mut stream, &headers, lines),
                Err(refusal) => {
                    let _ = stream.write_all(refusal.as_bytes());
                    continue;
                }
            }
            // The connection stays open until the client goes.
            std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
    url
}

/// Refuses the wrong token; `two` is selected where it is offered.
fn guarded() -> String {
    server(|headers| match headers {
        headers if headers.contains("x-token: wrong") => {
            Err("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 9\r\n\r\nno token!")
        }
        headers if headers.contains("one, two") => Ok("Sec-WebSocket-Protocol: two\r\n"),
        _ => Ok(""),
    })
}

/// Exit code and output of a case with these steps.
fn run(steps: &str) -> (Option<i32>, String) {
    run_with(steps, "{}", "")
}

/// The same with something more in `x-frameproof`, and in the configuration.
fn run_with(steps: &str, extension: &str, config: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = guarded();
    let output = frameproof(folder.path(), &["init", ".", "--url", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let case = format!(
        "family: own\ncases:\n  - name: case\n    title: A case\n    covers: [CH-2]\n    settle: false\n    steps:\n{steps}"
    );
    fs::write(folder.path().join("scenarios/first.yaml"), case).expect("written");
    fs::write(folder.path().join("o.yaml"), format!("x-frameproof: {extension}\n")).expect("written");
    let file = folder.path().join("frameproof.toml");
    let written = fs::read_to_string(&file).expect("the configuration");
    let target =
        format!("\n[target.x]\nprotocol = './mychat'\nscenario = ['scenarios']\nurl = '{url}'\n{config}\n");
    fs::write(&file, written + &target).expect("written");
    let output = frameproof(folder.path(), &["run", "--target", "x", "--overlay", "o.yaml"]);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

const REFUSED: &str = "      - { open: a, opening: none, may-refuse: true, headers: { X-Token: wrong } }\n";

#[test]
fn a_refusal_is_judged() {
    for (step, code, shown) in [
        ("- expect: refused", 0, ""),
        (
            "- expect: refused\n        with: { status: 401, headers: { www-authenticate: Bearer }, body: no token! }\n        \
             save: { status: /status }\n      - assert: { equal: ['{{status}}', 401] }\n      - check: { properties: { status: { const: 401 } } }",
            0,
            "",
        ),
        (
            "- expect: refused\n        with: { status: 403 }",
            1,
            "refused the connection with HTTP 401 Unauthorized, but not as",
        ),
        (
            "- expect: refused\n        where: { properties: { body: { const: x } } }",
            1,
            "but not as expected",
        ),
        ("- expect: refused\n        with: { code: 403 }", 2, "a refusal has no `code`"),
        ("- expect: refused\n        within: 1s", 2, "`within` does not go with `refused`"),
        ("- expect: [refused, welcome]", 2, "`refused` cannot be combined with other types"),
    ] {
        let (found, output) = run(&format!("{REFUSED}      {step}\n"));
        assert_eq!(found, Some(code), "{step}\n{output}");
        assert!(output.contains(shown), "{step}\n{output}");
    }
    let (code, output) =
        run("      - { open: a, opening: none }\n      - expect: refused\n        covers: [CH-1]\n");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("accepted the connection, where a refusal was expected"), "{output}");
    assert!(output.contains("CH-1 MUST"), "{output}");
}

#[test]
fn the_selected_sub_protocol_is_judged() {
    let offer = "protocols: [one, two], opening: none";
    for (open, code, shown) in [
        (format!("{offer}, selects: two"), 0, ""),
        (format!("{offer}, selects: one"), 1, "selects `two`, not `one`"),
        (format!("{offer}, selects: none"), 1, "selects `two`, not no sub-protocol"),
        ("opening: none, selects: none".to_owned(), 0, ""),
        ("opening: none, protocols: [], selects: none".to_owned(), 0, ""),
        ("opening: none, selects: two".to_owned(), 1, "selects no sub-protocol, not `two`"),
        // What is offered and not selected is a verdict in any case.
        ("opening: none, protocols: [three]".to_owned(), 1, "selects none of the sub-protocols"),
    ] {
        let (found, output) = run(&format!("      - {{ open: a, {open} }}\n"));
        assert_eq!(found, Some(code), "{open}\n{output}");
        assert!(output.contains(shown), "{open}\n{output}");
    }
}

/// What the protocol says of the upgrade holds for every connection, unless the target or an `open` says otherwise.
#[test]
fn a_protocol_says_how_its_clients_connect() {
    const OPEN: &str = "      - { open: a, opening: none }\n";
    const OFFERS: &str = "protocols: [one, two], selects: two, covers: [CH-4]";
    for (steps, upgrade, config, code, shown) in [
        (OPEN, OFFERS, "", 0, ""),
        (OPEN, "protocols: [one, two], covers: [CH-4]", "", 0, ""),
        (OPEN, "protocols: [one, two], selects: one, covers: [CH-4]", "", 1, "selects `two`, not `one`"),
        (OPEN, "protocols: [three], covers: [CH-4]", "", 1, "selects none of the sub-protocols"),
        (OPEN, "selects: none, covers: [CH-4]", "", 0, ""),
        (OPEN, "headers: { X-Token: wrong }", "", 3, "401"),
        // The target's header comes before the protocol's, and that of an `open` before both.
        (OPEN, "headers: { X-Token: wrong }", "header = ['x-token: good']", 0, ""),
        (
            "      - { open: a, opening: none, headers: { x-token: null } }\n",
            "headers: { X-Token: wrong }",
            "",
            0,
            "",
        ),
        (OPEN, "headers: { X-Token: '{{target.token}}' }", "parameters = { token = 'good' }", 0, ""),
        (OPEN, "headers: { X-Token: '{{target.token}}' }", "parameters = { token = 'wrong' }", 3, "401"),
        // Another offer is another matter.
        ("      - { open: a, opening: none, protocols: [] }\n", OFFERS, "", 0, ""),
    ] {
        let extension =
            format!("{{ upgrade: {{ {upgrade} }}, parameters: {{ token: {{ about: the token }} }} }}");
        let (found, output) = run_with(steps, &extension, config);
        assert_eq!(found, Some(code), "{steps} {upgrade} {config}\n{output}");
        assert!(output.contains(shown), "{steps} {upgrade} {config}\n{output}");
        if code == 1 {
            assert!(output.contains("CH-4 MUST"), "{output}");
        }
    }
}

#[test]
fn an_upgrade_that_cannot_be_is_refused() {
    for (upgrade, shown) in [
        ("protocols: [a b]", "`a b` is not a valid sub-protocol"),
        ("protocols: [one, one]", "offered twice"),
        ("protocols: [one], selects: two", "`two` is not offered"),
        ("headers: { Sec-WebSocket-Protocol: one }", "offered by `protocols`"),
        ("headers: { 'X Y': one }", "`X Y` is not a valid header"),
        ("headers: { X: '{{name}}' }", "undefined variable `name`"),
        ("headers: { X: '{{target.tokn}}' }", "there is no parameter `tokn`"),
        ("covers: [CH-4]", "`covers` has no effect"),
        ("covers: [CH-44], protocols: [one]", "unknown requirement `CH-44`"),
        ("protocol: one", "unknown field `protocol`"),
    ] {
        let extension =
            format!("{{ upgrade: {{ {upgrade} }}, parameters: {{ token: {{ about: the token }} }} }}");
        let (code, output) = run_with("      - open: a\n", &extension, "");
        assert_eq!(code, Some(2), "{upgrade}\n{output}");
        assert!(output.contains(shown), "{upgrade}\n{output}");
    }
}

/// `{{target.NAME}}`: what differs from server to server.
#[test]
fn a_parameter_of_the_target_is_a_variable() {
    const STEPS: &str =
        "      - { open: a, opening: none, protocols: ['{{target.offer}}', two], selects: two }\n";
    let extension =
        |default: &str| format!("{{ parameters: {{ offer: {{ about: what is offered first{default} }} }} }}");
    for (default, config, code, shown) in [
        ("", "parameters = { offer = 'one' }", 0, "1 passed"),
        (", default: one", "", 0, "1 passed"),
        (", default: three", "parameters = { offer = 'one' }", 0, "1 passed"),
        ("", "parameters = { offer = 'three' }", 1, "none of the sub-protocols"),
        // Nobody knows: the case cannot be judged, and says so.
        ("", "", 4, "it needs `offer` of the target (what is offered first)"),
        ("", "parameters = { ofer = 'one' }", 2, "the protocol has no parameter `ofer`"),
    ] {
        let (found, output) = run_with(STEPS, &extension(default), config);
        assert!(output.contains(shown), "{default} {config}\n{output}");
        assert_eq!(found, Some(code), "{default} {config}\n{output}");
    }
    let steps = STEPS.replace("target.offer", "target.ofer");
    let (code, output) = run_with(&steps, &extension(""), "");
    assert!(code == Some(2) && output.contains("there is no parameter `ofer`"), "{output}");
}

/// Refuses every upgrade that lacks what the protocol has clients send.
fn strict() -> String {
    server(|headers| {
        match (headers.contains("x-tenant: demo"), headers.contains("sec-websocket-protocol: own.v1")) {
            (true, true) => Ok("Sec-WebSocket-Protocol: own.v1\r\n"),
            (true, false) => Err("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
            (false, _) => Err("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
        }
    })
}

/// The first connection of every command is one of the protocol's clients, too.
#[test]
fn no_connection_lacks_what_clients_send() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = strict();
    let output = frameproof(folder.path(), &["init", ".", "--url", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let case = "family: own\ncases:\n  - name: case\n    title: A case\n    covers: [CH-2]\n    settle: false\n    steps:\n      \
                - { open: a, opening: none }\n";
    fs::write(folder.path().join("scenarios/first.yaml"), case).expect("written");
    let upgrade = "upgrade: { headers: { X-Tenant: '{{target.tenant}}' }, protocols: [own.v1], selects: own.v1, covers: [CH-2] }";
    let parameters = "parameters: { tenant: { about: Whose server it is. } }";
    fs::write(folder.path().join("o.yaml"), format!("x-frameproof:\n  {upgrade}\n  {parameters}\n"))
        .expect("written");
    let file = folder.path().join("frameproof.toml");
    let written = fs::read_to_string(&file).expect("the configuration");
    let target = format!(
        "\n[target.x]\nprotocol = './mychat'\nscenario = ['scenarios']\nurl = '{url}'\nparameters = {{ tenant = 'demo' }}\n"
    );
    fs::write(&file, written + &target).expect("written");
    let told = |arguments: &[&str]| {
        let output =
            frameproof(folder.path(), &[arguments, &["--target", "x", "--overlay", "o.yaml"]].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, shown) = told(&["run"]);
    assert_eq!(code, Some(0), "{shown}");
    for command in [&["doctor"][..], &["fuzz", "--iterations", "4"], &["explore", "--walks", "1"]] {
        let (_, shown) = told(command);
        assert!(!shown.contains("HTTP 40") && !shown.contains("cannot be tested"), "{command:?}: {shown}");
    }
}
