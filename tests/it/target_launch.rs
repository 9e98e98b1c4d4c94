//! Servers that frameproof launches: real processes on real sockets, started in order, found to be ready, and ended.

use std::fs;

use crate::support::target::{SERVED, folder, left_over, run};
use crate::support::{Served, frameproof, text};

#[test]
fn a_launched_server_is_tested_and_stopped() {
    let mark = format!("mark-{}-launched", std::process::id());
    let folder = folder(&SERVED.replace("MARKED", &mark));
    let (code, shown, errors) = run(&folder, &["run", "--target", "mine", "handshake/*", "approval/*"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("against mine (ws://127.0.0.1:"), "{shown}");
    let families = ["handshake/*", "approval/*"]
        .map(|glob| frameproof(folder.path(), &["run", "minicodex", "--list", glob]));
    let count: usize = families
        .iter()
        .map(|list| text(&list.stdout).lines().filter(|line| line.contains('/')).count())
        .sum();
    assert!(shown.contains(&format!("({count} cases")), "{count}: {shown}");
    assert_eq!(left_over(&mark), []);
}

#[test]
fn the_port_is_learned_from_the_log_and_families_and_cases_get_servers_of_their_own() {
    for fresh in ["family", "case"] {
        let config = format!(
            "[target.mine]\nprotocol = 'codelab'\nurl = '{{{{url}}}}'\nfresh = '{fresh}'\nquiet-period = '50ms'\n\
             command = ['BIN', 'serve', 'codelab']\nready = {{ log = '{{{{url}}}}' }}\n"
        );
        let folder = folder(&config);
        let (code, shown, errors) =
            run(&folder, &["run", "--target", "mine", "streaming/*", "error*/*", "--fail-fast"]);
        assert_eq!(code, Some(0), "{fresh}: {shown}{errors}");
        assert!(!shown.contains("came to a client of another"), "{shown}");
    }
}

#[test]
fn a_launched_server_is_restarted_on_its_data() {
    // Without a store the restarted server knows nothing, so this family's own protocol is taken.
    let folder = folder(
        "[target.db]\nprotocol = 'tinyvex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['BIN', 'serve', 'tinyvex', '--listen', '127.0.0.1:{{port}}']\n\
         [target.fixed]\nprotocol = 'tinyvex'\nurl = 'ws://127.0.0.1:1/ws'\n",
    );
    fs::write(
        folder.path().join("r.yaml"),
        "family: r\ncases:\n  - name: again\n    title: A restarted server accepts connections\n    steps:\n      \
         - open: alice\n      - restart: hard\n      - open: alice\n",
    )
    .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "db", "--scenario", "r.yaml", "-v"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("PASS") && shown.contains("r/again"), "{shown}");
}

#[test]
fn attach_launches_nothing() {
    let server = Served::start(&["minicodex"]);
    let folder = folder(&format!(
        "[target.mine]\nprotocol = 'minicodex'\nurl = '{}'\ncommand = ['no-such-program']\n",
        server.url
    ));
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "mine", "--attach", "--no-deadline", "handshake/*"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}

#[test]
fn several_processes_start_in_order_and_output_belongs_to_the_failing_case() {
    let folder = folder(
        "[target.two]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         [[target.two.process]]\nname = 'first'\ncommand = ['sh', '-c', 'echo I am up; cat > /dev/null']\nready = { log = 'I am {{state}}' }\n\
         [[target.two.process]]\nname = 'second'\nready = { tcp = '127.0.0.1:{{port}}' }\n\
         command = ['sh', '-c', 'echo state {{state}}; (while :; do echo tick; sleep 0.05; done) & exec BIN serve minicodex \
         --listen 127.0.0.1:{{port}}']\n",
    );
    // The case waits in vain for long enough that the server must write something meanwhile.
    let waits = "family: w\ncases:\n  - name: waits\n    title: Waits for what does not come\n    steps:\n      \
                 - open: alice\n      - expect: turn-end\n        within: 1s\n";
    fs::write(folder.path().join("w.yaml"), waits).expect("written");
    let (code, shown, errors) = run(
        &folder,
        &["run", "--target", "two", "--scenario", "w.yaml", "--json", "out.jsonl", "--junit", "out.xml"],
    );
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("output of the server at the time:") && shown.contains("second |"), "{shown}");
    assert!(
        fs::read_to_string(folder.path().join("out.xml"))
            .expect("xml")
            .contains("output of the server at the time:")
    );
    assert!(fs::read_to_string(folder.path().join("out.jsonl")).expect("json").contains("\"tick\""));
}

/// Python's own HTTP server in front: ready once it answers; and a server that speaks first: ready once it has.
#[test]
fn readiness_is_a_get_or_a_first_frame() {
    let mark = format!("mark-{}-ready", std::process::id());
    for (protocol, ready, command) in [
        (
            "minicodex",
            "{ http = 'http://127.0.0.1:{{web}}/' }",
            "(exec python3 -m http.server --bind 127.0.0.1 {{web}}) & exec BIN serve minicodex --listen 127.0.0.1:{{port}}",
        ),
        ("codey", "{ first-frame = true }", "exec BIN serve codey --listen 127.0.0.1:{{port}}"),
    ] {
        let folder = folder(&format!(
            "[target.r]\nprotocol = '{protocol}'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0, web = 0 }}\nready = {ready}\n\
             env = {{ M = '{mark}' }}\ncommand = ['sh', '-c', '{command}']\n"
        ));
        let url =
            if protocol == "codey" { "'ws://127.0.0.1:{{port}}/'" } else { "'ws://127.0.0.1:{{port}}/ws'" };
        let config = folder.path().join("frameproof.toml");
        let written = fs::read_to_string(&config).expect("the file");
        fs::write(&config, written.replace("'ws://127.0.0.1:{{port}}/ws'", url)).expect("written");
        let (code, shown, errors) = run(&folder, &["run", "--target", "r", "errors/*"]);
        assert_eq!(code, Some(0), "{protocol}: {shown}{errors}");
        assert_eq!(left_over(&mark), []);
    }
    // Neither comes: what was waited for is said, and nothing is left. This server waits for the client to speak.
    for (ready, part) in [
        ("{ http = 'http://127.0.0.1:{{web}}/' }", "is not answered with a status from 200 to 399"),
        ("{ first-frame = true }", "its URL yields no first frame"),
    ] {
        let folder = folder(&format!(
            "[target.r]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0, web = 0 }}\nready = {ready}\n\
             start-timeout = '400ms'\nenv = {{ M = '{mark}' }}\n\
             command = ['sh', '-c', 'sleep 600 & exec BIN serve minicodex --listen 127.0.0.1:{{{{port}}}}']\n"
        ));
        let (code, shown, errors) = run(&folder, &["run", "--target", "r"]);
        assert_eq!(code, Some(3), "{shown}{errors}");
        assert!(errors.contains(part) && errors.contains("was not ready within 400ms"), "{errors}");
        assert_eq!(left_over(&mark), []);
    }
}

/// A set-up call that fails: the server that it was made to is ended.
#[test]
fn a_failing_set_up_call_leaves_nothing_running() {
    let mark = format!("mark-{}-setup", std::process::id());
    let folder = folder(&format!(
        "{}[[target.mine.setup]]\nurl = 'http://127.0.0.1:{{{{port}}}}/sessions'\nsave = {{ id = '/id' }}\n",
        SERVED.replace("MARKED", &mark)
    ));
    let (code, shown, errors) = run(&folder, &["run", "--target", "mine"]);
    assert_eq!(code, Some(3), "{shown}{errors}");
    assert!(errors.contains("the set-up call POST http://127.0.0.1:"), "{errors}");
    assert_eq!(left_over(&mark), []);
}

/// The launched program asks the model whose address stands in its environment, and says what it answered.
#[test]
fn the_model_is_launched_with_the_target_and_ended_with_it() {
    let mark = format!("mark-{}-model", std::process::id());
    let folder = folder(&format!(
        "[target.m]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\n\
         env = {{ M = '{mark}', BASE = '{{{{model}}}}/v1' }}\nready = {{ log = 'model at {{{{address}}}}' }}\ncwd = '.'\n\
         command = ['sh', '-c', '(echo asked; python3 ask.py; exec BIN serve minicodex --listen 127.0.0.1:{{{{port}}}}) 2>&1']\n"
    ));
    fs::write(
        folder.path().join("ask.py"),
        "import json, os, urllib.request\nurl = os.environ['BASE']\n\
         opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n\
         ask = urllib.request.Request(url + '/chat/completions', json.dumps({'model': 'any', 'messages': [{'role': 'user', 'content': 'hi'}]}).encode(),\n    \
         {'content-type': 'application/json'})\nanswer = json.load(opener.open(ask))['choices'][0]['message']['content']\n\
         open('answer.txt', 'w').write(url + ' ' + answer)\nprint('model at', url, flush=True)\n",
    )
    .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "m", "errors/*"]);
    // The log tells that it is ready a moment before it listens.
    assert_eq!(code, Some(0), "{shown}{errors}");
    let answer = fs::read_to_string(folder.path().join("answer.txt")).expect("it was asked");
    let (url, words) = answer.split_once(' ').expect("both");
    assert_eq!(words, "ok");
    assert_eq!(left_over(&mark), []);
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    assert!(std::net::TcpStream::connect(address).is_err(), "the model is still there");
}

/// A line in the log may come before the server listens: then its port is waited for, too, and no longer than for the line.
#[test]
fn a_server_that_is_ready_before_it_listens_is_waited_for() {
    let mark = format!("mark-{}-early", std::process::id());
    for (then, code, parts) in [
        ("sleep 1; exec BIN serve minicodex --listen 127.0.0.1:{{port}}", 0, &["conformant"][..]),
        (
            "sleep 600",
            3,
            &[
                "was not ready within 700ms",
                "its output said that it is ready, but nothing listens on 127.0.0.1:",
            ],
        ),
        ("sleep 0.1; exit 7", 3, &["exited with status 7 before it was ready"]),
    ] {
        let timeout = if code == 0 { "30s" } else { "700ms" };
        let folder = folder(&format!(
            "[target.e]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\nenv = {{ M = '{mark}' }}\n\
             ready = {{ log = 'ready' }}\nstart-timeout = '{timeout}'\ncommand = ['sh', '-c', 'echo ready; {then}']\n"
        ));
        let (got, shown, errors) = run(&folder, &["run", "--target", "e", "handshake/*"]);
        assert_eq!(got, Some(code), "{then}: {shown}{errors}");
        for part in parts {
            assert!(
                shown.contains(part) || errors.contains(part),
                "{then}: {part} is not in {shown}{errors}"
            );
        }
        assert_eq!(left_over(&mark), [], "{then}");
    }
}

/// What the server of a case wrote before the case began is no part of what it wrote meanwhile.
#[test]
fn output_before_a_case_is_not_its_own() {
    let case = "family: f\ncases:\n  - name: waits\n    title: It waits\n    steps: [{ open: a }, { expect: turn_done, within: 2s }]\n";
    let folder = folder(
        "[target.own]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\nfresh = 'case'\n\
         command = ['sh', '-c', 'echo launching; (while :; do echo tick; sleep 0.02; done) & exec BIN serve minicodex \
         --listen 127.0.0.1:{{port}}']\n",
    );
    fs::write(folder.path().join("f.yaml"), case).expect("written");
    let arguments = ["run", "--target", "own", "--scenario", "f.yaml", "--junit", "j.xml"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    let xml = fs::read_to_string(folder.path().join("j.xml")).expect("JUnit");
    for report in [&shown, &xml] {
        assert!(report.contains("output of the server at the time"), "{report}");
        assert!(report.contains(" | tick") || report.contains(" |tick"), "{report}");
        assert!(!report.contains("launching"), "{report}");
    }
    let early = shown.lines().any(|line| line.trim_start().starts_with('-') && line.contains(" ms "));
    assert!(!early, "{shown}");
}

/// What a server writes beside its configuration or into the user's settings is nobody's to find there later.
#[test]
fn a_launched_server_has_a_home_and_a_working_folder_of_its_own() {
    let base = "[target.t]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
                command = ['sh', 'where.sh', '{{scratch}}']\n";
    let told = |more: &str| {
        let folder = folder(&format!("{base}{more}"));
        std::fs::write(
            folder.path().join("where.sh"),
            "[ \"$HOME\" = \"$1\" ] && echo 'home: scratch' || echo \"home: $HOME\"\n\
             [ \"$PWD\" = \"$1\" ] && echo 'folder: scratch' || echo \"folder: $(pwd -P)\"\nexit 7\n",
        )
        .expect("written");
        let place = std::fs::canonicalize(folder.path()).expect("a path").display().to_string();
        let (code, shown, errors) = run(&folder, &["doctor"]);
        assert_eq!(code, Some(1), "{shown}{errors}");
        (shown, place)
    };
    let (shown, _) = told("");
    assert!(shown.contains("| home: scratch") && shown.contains("| folder: scratch"), "{shown}");
    assert!(shown.contains("It runs in a scratch folder unless `cwd` says otherwise"), "{shown}");
    let (shown, place) = told("cwd = '.'\nhome = '~'\n");
    let home = std::env::var("HOME").unwrap_or_default();
    assert!(
        shown.contains(&format!("| home: {home}")) && shown.contains(&format!("| folder: {place}")),
        "{shown}"
    );
    let (shown, _) = told("env = { HOME = '/nowhere' }\n");
    assert!(shown.contains("| home: /nowhere"), "{shown}");
    // Said where all is well, too.
    let (_, shown, _) = run(&folder(SERVED), &["doctor"]);
    let said: Vec<&str> = shown.split_whitespace().collect();
    assert!(said.join(" ").contains("its working folder and its HOME are a scratch folder"), "{shown}");
}
