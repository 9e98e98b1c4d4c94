//! What a target's table says of its sessions: set-up calls, isolation, tools, prompts, files, overlays.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::Ordering;

use crate::support::hand::{self, Tells};
use crate::support::target::{folder, run};
use crate::support::{Served, frameproof};

/// An HTTP server that makes sessions: answers each request with this. Its port.
fn http(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            hand::request(&stream);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn set_up_calls_fill_the_url() {
    let server = Served::start(&["codelab"]);
    let ws = server.url.replace("{session_id}", "{{session_id}}");
    for (answer, save, code, part) in [
        (
            "HTTP/1.1 201 Created\r\nContent-Length: 27\r\nConnection: close\r\n\r\n{\"data\":{\"id\":\"from-http\"}}",
            "/data/id",
            0,
            "conformant",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{\"id\": 1}",
            "/data/id",
            3,
            "has nothing at /data/id, for `session_id`, in its answer {\"id\":1}",
        ),
        (
            "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy",
            "/id",
            3,
            "answered with HTTP 500, not a status from 200 to 299: busy",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nokay",
            "/id",
            3,
            "text that is not JSON",
        ),
    ] {
        let port = http(answer);
        let folder = folder(&format!(
            "[target.c]\nprotocol = 'codelab'\nurl = '{ws}'\nsessions = 1\nquiet-period = '50ms'\n[[target.c.setup]]\n\
             url = 'http://127.0.0.1:{port}/sessions'\nbody = {{ name = 'x' }}\nsave = {{ session_id = '{save}' }}\n"
        ));
        let (got, shown, errors) =
            run(&folder, &["run", "--target", "c", "--case", "streaming/*", "--trace", "t.ndjson"]);
        assert_eq!(got, Some(code), "{shown}{errors}");
        assert!(shown.contains(part) || errors.contains(part), "{part} is not in\n{shown}{errors}");
        if code == 0 {
            let trace = fs::read_to_string(folder.path().join("t.ndjson")).expect("the trace");
            assert!(trace.contains("/ws/from-http"), "{trace}");
        }
    }
}

/// The folder of a chat protocol, and a target for it.
fn chat_folder(url: &str, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", url]);
    let config = format!(
        "[target.chat]\nprotocol = './mychat'\nscenario = ['scenarios']\nurl = '{url}'\ntimeout-scale = 0.2\n{more}"
    );
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    folder
}

/// One session for all, and answers that go to whoever came last: each frame that reached the wrong client is told, with both clients.
#[test]
fn answers_that_go_to_another_client_are_a_leak() {
    for tells in [Tells::All, Tells::TheLast] {
        let (url, _) = hand::chat(tells);
        let folder = chat_folder(&url, "");
        let arguments =
            ["run", "--target", "chat", "first/a-turn", "--json", "out.jsonl", "--junit", "out.xml"];
        let (code, shown, errors) = run(&folder, &arguments);
        // The protocol does not forbid it: a warning, and the run goes on alone.
        assert_eq!(code, Some(0), "{shown}{errors}");
        assert!(shown.contains("1 passed, 0 failed, 1 warned"), "{shown}");
        for part in [
            "a message of one session reached a client of another: `bob` of session `other` received",
            "frames of the turn that `alice` began in session `main`: frame ",
            "{\"type\":\"said\",\"seq\":1,\"text\":\"",
            "reproduce: frameproof doctor --target chat",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        let report = fs::read_to_string(folder.path().join("out.jsonl")).expect("the report");
        let reports =
            report.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let failures: Vec<serde_json::Value> =
            reports.flat_map(|line| line["failures"].as_array().cloned().unwrap_or_default()).collect();
        assert_eq!(failures.len(), 1, "{report}");
        let frames = failures[0]["actual"].as_array().expect("a list").clone();
        assert!(!frames.is_empty());
        for frame in &frames {
            assert_eq!(
                (&frame["came_to"], &frame["belongs_to"]),
                (&"bob".into(), &"alice".into()),
                "{frame}"
            );
        }
        assert_eq!(failures[0]["frames"].as_array().map(Vec::len), Some(frames.len()));
        let xml = fs::read_to_string(folder.path().join("out.xml")).expect("the report");
        assert!(xml.contains("`bob` of session `other`"), "{xml}");
    }
}

/// A message that bears no text of the clients is known by its id: what it makes of the cases that it comes to is one story.
#[test]
fn a_message_that_goes_to_everybody_is_a_leak() {
    let server = Served::start(&["agentloop"]);
    let url = hand::shouting(&server.url, "\"type\":\"error\"");
    let folder = tempfile::tempdir().expect("a folder");
    let (code, shown, errors) =
        run(&folder, &["run", "agentloop", "--url", &url, "--jobs", "8", "errors/*", "input/*", "turn/*"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("AL-CON-4 SHOULD") && shown.contains("came to `alice` in "), "{shown}");
    // Whatever runs when it is found out is part of that story.
    let stories = shown.lines().filter(|line| line.starts_with("FAIL ")).count();
    assert!(stories <= 2 && shown.contains("the server does not isolate clients"), "{shown}");
}

/// Where a requirement forbids it, it is broken.
#[test]
fn a_leak_breaks_the_requirement_that_forbids_it() {
    let (url, _) = hand::chat(Tells::All);
    let folder = chat_folder(&url, "overlay = ['apart.yaml']\n");
    fs::write(folder.path().join("apart.yaml"), "x-frameproof: { fuzzing: { isolated: [CH-1] } }\n")
        .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "chat", "first/a-turn"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("1 passed, 1 failed") && shown.contains("FAIL CH-1"), "{shown}");
}

/// Leaks between cases that run side by side, on a server that nothing was asked before: told with both cases, and once.
#[test]
fn what_one_case_is_told_and_another_hears_is_told_once_with_both() {
    let turn = "      - send: { type: say, text: '{{uuid}}' }\n      - expect: turn-end\n";
    let case = |name: &str| {
        format!("  - name: {name}\n    title: A turn\n    steps:\n      - open: alice\n{}", turn.repeat(8))
    };
    let cases: String = ["one", "two", "three", "four", "five", "six"].map(case).concat();
    for tells in [Tells::All, Tells::TheLast] {
        let (url, _) = hand::chat(tells);
        let folder = chat_folder(&url, "");
        fs::write(folder.path().join("side.yaml"), format!("family: side\ncases:\n{cases}"))
            .expect("written");
        let run_with = |jobs: &str| {
            let server = ["--url", &url, "--timeout-scale", "0.2", "--jobs", jobs];
            run(&folder, &[&["run", "--protocol", "mychat", "--scenario", "side.yaml"], &server[..]].concat())
        };
        let (code, shown, errors) = run_with("6");
        // The protocol owes no isolation: no case fails for it.
        assert_eq!(code, Some(0), "{shown}{errors}");
        for part in [
            "a message for one case's client reaches another's: the server does not isolate clients: a frame of `alice` in side/",
            " came to `alice` in side/",
            "No requirement forbids it: this case was run again",
            "same reason as side/",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert_eq!(shown.lines().filter(|line| line.starts_with("WARN side/")).count(), 1, "{shown}");
        // Where each client is alone there is nobody to hear it.
        let (code, shown, errors) = run_with("1");
        assert_eq!(code, Some(0), "{shown}{errors}");
    }
}

/// One session for all connections, whose frames bear nothing else that a client has said: its id tells.
#[test]
fn one_session_for_all_is_found_while_cases_run_side_by_side() {
    let server = Served::start(&["codey"]);
    let url = hand::altered(&server.url, |text| {
        let Some((before, rest)) = text.split_once("\"session_id\":\"") else { return text.to_owned() };
        let after = rest.split_once('"').map_or("", |(_, after)| after);
        format!("{before}\"session_id\":\"0b8c1a52-5c3f-4a52-9a57-3f6c2a1d9e11\"{after}")
    });
    let folder = folder("");
    let run_with = |jobs: &str| {
        let arguments = ["run", "codey", "--url", &url, "--jobs", jobs, "streaming/*", "messages/*"];
        run(&folder, &arguments)
    };
    let (code, shown, errors) = run_with("8");
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("the server does not isolate clients: `"), "{shown}");
    assert!(shown.contains("get the same session id"), "{shown}");
    assert!(shown.contains("CO-CN-12 MUST"), "the requirement is named: {shown}");
    let stories = shown.lines().filter(|line| line.starts_with("FAIL ")).count();
    assert_eq!(stories, 1, "{shown}");
    let (code, shown, errors) = run_with("1");
    assert_eq!(code, Some(0), "{shown}{errors}");
}

/// `sessions = 1`: one client at a time, and nobody there to hear.
#[test]
fn cases_run_one_after_the_other_where_the_target_says_so() {
    let (url, most) = hand::chat(Tells::All);
    let folder = chat_folder(&url, "sessions = 1\n");
    let (code, shown, errors) = run(&folder, &["run", "--target", "chat", "first/a-turn", "--repeat", "6"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    // A connection that is given up may be seen a moment after the next one.
    assert!(most.load(Ordering::SeqCst) <= 2, "{}", most.load(Ordering::SeqCst));
    let (url, most) = hand::chat(Tells::All);
    let folder = chat_folder(&url, "sessions = 6\n");
    run(&folder, &["run", "--target", "chat", "first/a-turn"]);
    assert!(most.load(Ordering::SeqCst) >= 2, "the probe has two clients");
}

/// Each class of tools has a name and arguments of the target's own: they are what the model calls and the server is asked about.
#[test]
fn classes_of_tools_are_the_targets_own() {
    let folder = folder(
        "[target.t]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']\n\
         [target.t.tools.open]\nname = 'slow_note'\nargs = { ms = 1 }\n\
         [target.t.tools.guarded]\nname = 'write_note'\nargs = { key = 'mine', text = 'own' }\n\
         [target.t.tools.slow]\nname = 'slow_note'\nargs = { ms = 7 }\n\
         [target.t.tools.denied]\nname = 'fail_note'\nargs = { message = 'no' }\n\
         [target.t.tools.failing]\nname = 'read_note'\nargs = { key = 'nowhere' }\n",
    );
    let mut cases = String::from("family: c\ncases:\n");
    for (class, name, args) in [
        ("open", "slow_note", "{ ms: 1 }"),
        ("guarded", "write_note", "{ key: mine, text: own }"),
        ("slow", "slow_note", "{ ms: 7 }"),
        ("denied", "fail_note", "{ message: 'no' }"),
        ("failing", "read_note", "{ key: nowhere }"),
    ] {
        cases += &format!(
            "  - name: {class}\n    title: The class {class}\n    turn: [{{ call: {{ class: {class}, args: {{ ms: 9, key: other, text: other }} }} }}]\n    \
             settle: false\n    steps:\n      - open: a\n      - send: {{ type: send, text: '{{{{cue}}}}' }}\n      - expect: tool_call\n      \
             - check: {{ properties: {{ name: {{ const: {name} }}, args: {{ const: {args} }} }} }}\n      - send: {{ type: abort }}\n"
        );
    }
    fs::write(folder.path().join("c.yaml"), cases).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "t", "--scenario", "c.yaml"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("5 passed"), "{shown}");
    // Without the table the protocol's own tools are called, and the same cases fail.
    let config = folder.path().join("frameproof.toml");
    let written = fs::read_to_string(&config).expect("the file");
    fs::write(&config, written.split("[target.t.tools.open]").next().expect("a part")).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "t", "--scenario", "c.yaml"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
}

/// The target's arguments are templates of those that a case gives, and checks compare with what the cue said.
#[test]
fn the_arguments_of_a_targets_tools_are_made_of_the_cases() {
    let folder = folder(
        "[target.t]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']\nwithout-tools = ['slow']\n\
         [target.t.tools.open]\nname = 'read_note'\nargs = { key = 'notes/{{key}}' }\n\
         [target.t.tools.guarded]\nname = 'write_note'\n\
         args = { key = 'notes/{{key}}', text = '{{text}}', mode = 'w', key_again = '{{key}}' }\n",
    );
    let case = "family: c\ncases:\n  - name: mapped\n    title: The call has the arguments of the target's tool\n    \
         turn: [{ call: { class: guarded, args: { key: mine } } }]\n    \
         turns: { other: [{ say: [x] }, { call: { class: guarded, args: { key: theirs, text: 5 } } }] }\n    settle: false\n    \
         steps:\n      - open: a\n      - send: { type: send, text: '{{cue}}' }\n      - expect: tool_call\n      \
         - check: { properties: { name: { const: '{{calls.0.name}}' }, args: { const: '{{calls.0.args}}' } } }\n      \
         - check: { properties: { args: { const: { key: notes/mine, text: written, mode: w, key_again: mine } } } }\n      \
         - check: { not: {} }\n        when: { differ: ['{{calls.other.0.args.key}} {{calls.other.0.args.text}}', notes/theirs 5] }\n      \
         - send: { type: abort }\n  - name: slow\n    title: A slow call\n    turn: [{ call: { class: slow } }]\n    \
         steps:\n      - open: a\n      - send: { type: send, text: '{{cue}}' }\n      - expect: tool_call\n";
    fs::write(folder.path().join("c.yaml"), case).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "t", "--scenario", "c.yaml"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("1 passed, 0 failed, 1 not applicable"), "{shown}");
    assert!(shown.contains("not applicable: c/slow: the target has no tool of the class `slow`"), "{shown}");
    // The shipped cases hold for such a tool, too.
    let (code, shown, errors) = run(&folder, &["run", "--target", "t", "--strict", "approval/*", "abort/*"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("not applicable: ") && shown.contains("class `slow`"), "{shown}");
}

#[test]
fn what_the_overlay_excuses_is_listed() {
    let folder = folder(
        "[target.t]\nprotocol = 'agentloop'\nurl = 'ws://127.0.0.1:{{port}}/'\nports = { port = 0 }\noverlay = ['o.yaml']\n\
         command = ['BIN', 'serve', 'agentloop', '--fault', 'usage-as-text', '--listen', '127.0.0.1:{{port}}']\n",
    );
    fs::write(
        folder.path().join("o.yaml"),
        "components:\n  messages:\n    context_info:\n      payload:\n        properties:\n          payload:\n            properties:\n              \
         usagePercent: { type: [number, string] }\n",
    )
    .expect("written");
    let arguments = ["run", "--target", "t", "--requirement", "AL-CTX-2"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("excused by the overlay:") && shown.contains("AL-CTX-2"), "{shown}");
    fs::write(folder.path().join("o.yaml"), "x-frameproof: {}\n").expect("written");
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(!shown.contains("excused by the overlay:"), "{shown}");
}

#[test]
fn files_of_the_server_are_looked_at() {
    let folder = folder(
        "[target.f]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\ncwd = '{{scratch}}'\n\
         command = ['sh', '-c', 'echo written > note.txt; exec BIN serve minicodex --listen 127.0.0.1:{{port}}']\n",
    );
    fs::write(
        folder.path().join("f.yaml"),
        "family: f\ncases:\n  - name: there\n    title: There\n    steps:\n      - open: a\n      - expect_file: note.txt\n        where: { pattern: '^written' }\n      \
         - expect_file: other.txt\n        where: { type: 'null' }\n  - name: missing\n    title: Missing\n    covers: [MC-TI-11]\n    steps:\n      - open: a\n      \
         - expect_file: other.txt\n        within: 50ms\n",
    )
    .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "f", "--scenario", "f.yaml", "-v"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("there is no file `other.txt` in the scratch folder"), "{shown}");
    assert!(shown.contains("f/there") && shown.contains("PASS"), "{shown}");
    // A server that is not ours has no folder of ours.
    let server = Served::start(&["minicodex"]);
    let (code, shown, _) =
        run(&folder, &["run", "minicodex", "--url", &server.url, "--scenario", "f.yaml", "-v"]);
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("2 not applicable"), "{shown}");
}

/// Also where a glob that comes later in the alphabet stands first.
#[test]
fn the_first_prompt_as_written_counts() {
    let prompts =
        [("'z/*' = 'Z', 'p/*' = 'Second', '*' = 'Last'", "Second"), ("'*' = 'All', 'p/*' = 'P'", "All")];
    for (prompts, counts) in prompts {
        let folder = folder(&format!(
            "[target.p]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\n\
             command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{{{port}}}}']\nprompts = {{ {prompts} }}\n"
        ));
        let case = "family: p\ncases:\n  - name: says\n    title: Says\n    turn: [{ say: [Hi] }]\n    steps:\n      - open: a\n      \
                    - send: { type: send, text: '{{cue}}' }\n      - expect: turn-end\n";
        fs::write(folder.path().join("p.yaml"), case).expect("written");
        let (code, shown, errors) =
            run(&folder, &["run", "--target", "p", "--scenario", "p.yaml", "--trace", "t.ndjson"]);
        assert_eq!(code, Some(0), "{shown}{errors}");
        let trace = fs::read_to_string(folder.path().join("t.ndjson")).expect("a trace");
        assert!(trace.contains(&format!("\\\"text\\\":\\\"{counts}\\\"")), "{trace}");
    }
}

#[test]
fn prompts_stand_in_place_of_cues() {
    let folder = folder(
        "[target.p]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']\nprompts = { 'p/says' = 'Say hello.' }\n",
    );
    let case = "    turn: [{ say: [Hel, lo] }]\n    steps:\n      - open: a\n      - send: { type: send, text: '{{cue}}' }\n      \
                - expect: assistant_text\n        with: { text: Hel }\n      - expect: turn-end\n";
    fs::write(
        folder.path().join("p.yaml"),
        format!("family: p\ncases:\n  - name: says\n    title: Says\n{case}  - name: unknown\n    title: No prompt\n{case}"),
    )
    .expect("written");
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "p", "--scenario", "p.yaml", "-v", "--trace", "t.ndjson"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("1 passed") && shown.contains("1 not applicable"), "{shown}");
    assert!(fs::read_to_string(folder.path().join("t.ndjson")).expect("a trace").contains("Say hello."));
}

/// No prompt makes a model fail, hang or call two tools at once, nor fixes the arguments of a call.
#[test]
fn what_no_prompt_brings_about_is_not_judged() {
    let config = |prompts: &str| {
        format!(
            "[target.p]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\n\
             command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{{{port}}}}']\nprompts = {{ {prompts} }}\n"
        )
    };
    let case = |name: &str, turn: &str| {
        format!(
            "  - name: {name}\n    title: A turn\n    turn: [{turn}]\n    steps:\n      - open: a\n      - send: {{ type: send, text: '{{{{cue}}}}' }}\n      \
             - expect: turn-end\n"
        )
    };
    let cases = format!(
        "family: p\ncases:\n{}{}{}{}",
        case("fails", "{ fail: { status: 500, message: no } }"),
        case("hangs", "{ hang: true }"),
        case("two", "{ call: { class: open } }, { call: { class: open } }, { say: [done] }"),
        case("one", "{ call: { class: open } }, { say: [done] }"),
    );
    for (prompts, parts) in [
        (
            "'*' = 'Hello.'",
            &[
                "1 passed",
                "3 not applicable",
                "no plain prompt makes a model fail",
                "no plain prompt makes a model hang",
                "no plain prompt makes a model call several tools at once",
            ][..],
        ),
        ("'p/two' = 'Read both.', '*' = 'Hello.'", &["2 passed", "2 not applicable"]),
    ] {
        let folder = folder(&config(prompts));
        fs::write(folder.path().join("p.yaml"), &cases).expect("written");
        let (code, shown, errors) = run(&folder, &["run", "--target", "p", "--scenario", "p.yaml", "-v"]);
        assert_eq!(code, Some(0), "{shown}{errors}");
        for part in parts {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }
    // The model of a prompt's server is played by the cue in it, which calls with arguments of its own.
    let folder = folder(&config(
        "'*' = '[[cue:eyJ2IjoxLCJ0dXJuIjpbeyJjYWxsIjp7Im5hbWUiOiJyZWFkX25vdGUiLCJhcmdzIjp7ImtleSI6Im90aGVyIn19fV19]]'",
    ));
    let case = "family: p\ncases:\n  - name: reads\n    title: Reads\n    turn: [{ call: { class: open, args: { key: mine } } }]\n    steps:\n      \
                - open: a\n      - send: { type: send, text: '{{cue}}' }\n      - expect: tool_call\n        with: { name: read_note, args: { key: mine } }\n";
    fs::write(folder.path().join("p.yaml"), case).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "p", "--scenario", "p.yaml"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}
