//! Servers that do not start, die, or are interrupted: each is said, and nothing is left running.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::support::hand;
use crate::support::target::{BINARY, SERVED, folder, left_over, run};

#[test]
fn what_does_not_start_is_said_with_a_hint_and_nothing_is_left() {
    let mark = format!("mark-{}-broken", std::process::id());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let base =
        format!("url = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\nenv = {{ M = '{mark}' }}\n");
    for (config, code, parts) in [
        (
            format!("{base}command = ['no-such-program-here']"),
            3,
            &["`no-such-program-here`", "cannot be started", "PATH"][..],
        ),
        (
            format!("{base}command = ['sh', '-c', 'echo oops >&2; exit 7']"),
            3,
            &["exited with status 7 before it was ready", "| oops"],
        ),
        (
            format!(
                "{base}command = ['sh', '-c', 'echo waiting; sleep 600 & sleep 600']\nstart-timeout = '300ms'"
            ),
            3,
            &["was not ready within 300ms", "nothing listens on 127.0.0.1:", "| waiting", "start-timeout"],
        ),
        (
            format!("url = 'ws://127.0.0.1:{port}/ws'\ncommand = ['sleep', '600']"),
            3,
            &["is in use already", "--attach"],
        ),
        (
            format!("{base}command = ['sleep', '600']\ncwd = 'nowhere'"),
            2,
            &["nowhere is not a folder", "frameproof.toml:7:7"],
        ),
        (
            format!("{base}comand = ['x']"),
            2,
            &["unknown field `comand`", "did you mean `command`?", "frameproof.toml:6:1"],
        ),
        (
            format!("{base}bearer = 'env:SURELY_UNSET'"),
            2,
            &["SURELY_UNSET is not set", "frameproof.toml:6:11", "export"],
        ),
        (
            format!("{base}command = ['{{{{prt}}}}']"),
            2,
            &["nothing sets the variable `prt`", "did you mean `port`?"],
        ),
        (format!("{base}ready = {{ tcp = 'a', http = 'b' }}"), 2, &["exactly one of tcp, http, log"]),
        (format!("{base}start-timeout = '5'"), 2, &["write `250ms` or `3s`"]),
        (
            format!("{base}command = ['x']\ntools.opn = {{ name = 'y' }}"),
            2,
            &["no class of tools `opn`", "did you mean `open`?"],
        ),
    ] {
        let folder = folder(&format!("[target.t]\nprotocol = 'minicodex'\n{config}\n"));
        let (got, shown, errors) = run(&folder, &["run", "--target", "t"]);
        assert_eq!(got, Some(code), "{config}\n{shown}{errors}");
        for part in parts {
            assert!(errors.contains(part), "{part} is not in\n{errors}");
        }
        assert_eq!(left_over(&mark), [], "{config}");
    }
    let folder = folder(SERVED);
    let (code, _, errors) = run(&folder, &["run", "--target", "min"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("there is no target `min`") && errors.contains("did you mean `mine`?"),
        "{errors}"
    );
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let mark = format!("mark-{}-interrupted", std::process::id());
    // The shell and its child ignore SIGTERM: only the kill ends them.
    let config = SERVED.replace("MARKED", &mark).replace(
        "command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']",
        "stop-timeout = '200ms'\ncommand = ['sh', '-c', \"trap '' TERM; sleep 600 & BIN serve minicodex --listen 127.0.0.1:{{port}}; sleep 600\"]",
    );
    let folder = folder(&config);
    let mut child = Command::new(BINARY)
        .args(["run", "--target", "mine", "--repeat", "1000", "-v"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    // The first case is done, so the server is there.
    while !line.contains("PASS") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("text"), 0, "the run ended by itself");
    }
    assert!(!left_over(&mark).is_empty());
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(interrupt.success());
    std::io::copy(&mut out, &mut std::io::sink()).expect("read");
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    assert_eq!(left_over(&mark), []);
}

#[test]
fn a_server_that_dies_ends_with_a_verdict() {
    let mark = format!("mark-{}-dies", std::process::id());
    // It lives until its fifth connection: its proxy counts.
    let folder = folder(&format!(
        "[target.d]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\nsessions = 1\nenv = {{ M = '{mark}' }}\n\
         command = ['python3', '{{{{scratch}}}}/../dies.py', 'BIN', '{{{{port}}}}']\n"
    ));
    let script = folder.path().join("dies.py");
    fs::write(&script, DIES).expect("written");
    let config = folder.path().join("frameproof.toml");
    let written = fs::read_to_string(&config).expect("the file");
    fs::write(&config, written.replace("{{scratch}}/../dies.py", &script.display().to_string()))
        .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "d", "handshake/*", "errors/*"]);
    assert_eq!(code, Some(3), "{shown}{errors}");
    for part in ["the server died while this case ran: process `d` exited with status 9", "no verdict"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(shown.contains("passed") && !shown.contains(" 0 passed"), "it was launched again: {shown}");
    assert_eq!(left_over(&mark), []);
}

/// Passes connections on to a reference server, and dies on the seventh.
const DIES: &str = r#"
import os, socket, subprocess, sys, threading
server = subprocess.Popen([sys.argv[1], "serve", "minicodex"], stdout=subprocess.PIPE, text=True)
host, port = server.stdout.readline().strip().split("//")[1].split("/")[0].split(":")
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[2])))
listener.listen(64)
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
count = 0
while True:
    client, _ = listener.accept()
    count += 1
    if count > 7:
        os._exit(9)
    other = socket.create_connection((host, int(port)))
    for pair in ((client, other), (other, client)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"#;

/// It dies after each case, when nobody looks: that is a death, told once, and no case is blamed.
#[test]
fn a_server_that_dies_between_cases_is_not_passed_over() {
    let folder = folder(
        "[target.idle]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\nsessions = 1\n\
         command = ['python3', 'idle.py', 'BIN', '{{port}}']\nready = { log = 'listening' }\n",
    );
    let idle = DIES.split("count = 0").next().expect("its beginning").to_owned() + IDLE;
    fs::write(folder.path().join("idle.py"), idle).expect("written");
    let arguments = ["run", "--target", "idle", "--json", "out.jsonl", "errors/*"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(3), "{shown}{errors}");
    for part in [
        "ERROR target/lives-on: The server runs until it is stopped",
        "the server died between cases; it was started again for ",
        "process `idle` exited with status 9",
        "| out of luck",
        " 0 failed, ",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(shown.matches("reproduce:").count() <= 2, "once, however often: {shown}");
}

/// Passes connections on, and ends as soon as the client of the sixth takes its leave, or of a later one: whoever was served has
/// been served well.
const IDLE: &str = r#"
print("listening", flush=True)
count = 0
def up(client, other):
    try:
        while data := client.recv(65536):
            if count >= 6 and data[0] == 0x88:
                server.kill()
                print("out of luck", file=sys.stderr, flush=True)
                os._exit(9)
            other.sendall(data)
    except OSError:
        pass
    other.close()
while True:
    client, _ = listener.accept()
    count += 1
    other = socket.create_connection((host, int(port)))
    threading.Thread(target=up, args=(client, other), daemon=True).start()
    threading.Thread(target=pump, args=(other, client), daemon=True).start()
"#;

/// What is said of the scripted model goes by what is so: whether it was started, named to the server and asked.
#[test]
fn what_is_said_of_the_model_is_so() {
    let told = SERVED.replace("env = {", "env = { OPENAI_BASE_URL = '{{model}}/v1',");
    let somewhere = format!("{SERVED}model = '127.0.0.1:0'\n");
    let faulty = |config: &str| {
        config.replace("'serve', 'minicodex'", "'serve', 'minicodex', '--fault', 'finishes-twice'")
    };
    let named = "hint: the scripted model received no request: its address is set in `env.OPENAI_BASE_URL` of [target.mine]: does the \
                 server read it?";
    let unnamed = "hint: the scripted model received no request: point the server to it: env = {";
    let none = "hint: no scripted model was started: `{{model}}` does not occur in [target.mine]: point the server to it: env = {";
    for (config, hint) in [(&told, named), (&somewhere, unnamed), (&SERVED.to_owned(), none)] {
        let folder = folder(&faulty(config));
        let (code, shown, errors) =
            run(&folder, &["run", "--target", "mine", "--junit", "j.xml", "streaming/*"]);
        assert_eq!(code, Some(1), "{shown}{errors}");
        assert!(
            shown.contains(hint) && shown.contains("`frameproof doctor --target mine`"),
            "{hint}\n{shown}"
        );
        let xml = fs::read_to_string(folder.path().join("j.xml")).expect("JUnit");
        assert!(
            xml.contains("the scripted model received no request") || xml.contains("no scripted model"),
            "{xml}"
        );
        // Where nothing is wrong, the server may have words of its own.
        let folder = crate::support::target::folder(config);
        let (code, shown, errors) = run(&folder, &["run", "--target", "mine", "streaming/*"]);
        assert_eq!(code, Some(0), "{shown}{errors}");
        assert!(!shown.contains("hint:"), "{shown}");
    }
    // A server that says nothing at all has not come as far as to ask anybody.
    let url = hand::mute(None).trim_end_matches('/').to_owned() + "/ws";
    let folder = folder(&format!(
        "[target.mine]\nprotocol = 'minicodex'\nurl = '{url}'\nmodel = '127.0.0.1:0'\ntimeout-scale = 0.05\n"
    ));
    let (code, shown, errors) = run(&folder, &["run", "--target", "mine", "streaming/*"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(!shown.contains("scripted model"), "{shown}");
}

/// It cuts connections and lives, and then cuts one and exits a little later.
#[test]
fn a_server_that_dies_late_is_not_blamed_by_a_requirement() {
    let folder = folder(
        "[target.late]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\nsessions = 1\n\
         command = ['python3', 'late.py', 'BIN', '{{port}}']\n",
    );
    let late = DIES.split("    if count > 7:").next().expect("its beginning").to_owned() + LATE;
    fs::write(folder.path().join("late.py"), late).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "late", "errors/*"]);
    assert!(matches!(code, Some(1 | 3)), "{shown}{errors}");
    assert!(
        shown.contains("the server died while this case ran: process `late` exited with status 9"),
        "{shown}"
    );
}

/// The first connection goes on, as those that come after five that are cut behind the upgrade; at the last of these it ends.
const LATE: &str = r#"
    other = socket.create_connection((host, int(port)))
    if 1 < count < 7:
        other.sendall(client.recv(65536))
        client.sendall(other.recv(65536))
        for s in (client, other):
            s.shutdown(socket.SHUT_RDWR)
            s.close()
        if count == 6:
            import time
            time.sleep(0.3)
            os._exit(9)
        continue
    for pair in ((client, other), (other, client)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"#;

/// Somebody kills the server while cases run.
#[test]
fn a_server_that_is_killed_ends_with_a_verdict() {
    let mark = format!("mark-{}-killed", std::process::id());
    let folder = folder(&SERVED.replace("MARKED", &mark));
    let mut child = Command::new(BINARY)
        .args(["run", "--target", "mine", "--repeat", "20", "--jobs", "8", "-v", "abort/*", "approval/*"])
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut shown = String::new();
    // Of the cases that come then, some take long: it does not die between two.
    while shown.matches(" PASS ").count() < 8 {
        assert_ne!(out.read_line(&mut shown).expect("text"), 0, "the run ended by itself: {shown}");
    }
    for (pid, _) in left_over(&mark) {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    std::io::Read::read_to_string(&mut out, &mut shown).expect("text");
    assert_eq!(child.wait().expect("its end").code(), Some(3), "{shown}");
    assert!(
        shown.contains("the server died while this case ran: process `mine` was ended by signal 9"),
        "{shown}"
    );
    assert!(shown.matches(" PASS ").count() > 10, "it was launched again: {shown}");
    assert_eq!(left_over(&mark), []);
}

/// A mistyped protocol in a folder with a target is taken for a selection of cases: the hint names the protocol.
#[test]
fn a_mistyped_protocol_is_hinted_at() {
    let folder = folder(SERVED);
    let (code, shown, errors) = run(&folder, &["run", "minicodx"]);
    assert_eq!(code, Some(4), "{shown}{errors}");
    assert!(errors.contains("did you mean the protocol `minicodex`?"), "{errors}");
}

/// What a server says last may hold what it was sent: that is not shown.
#[test]
fn last_words_keep_secrets() {
    let folder = folder(
        "[target.t]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\nready = { log = 'ready' }\n\
         bearer = 'a-long-secret-value'\ncommand = ['python3', 'dies.py', '{{port}}']\n",
    );
    let program = "import socket, sys\nserver = socket.create_server(('127.0.0.1', int(sys.argv[1])))\nprint('ready', flush=True)\n\
                   server.accept()\nprint('fatal: bad token a-long-secret-value', file=sys.stderr, flush=True)\nsys.exit(3)\n";
    fs::write(folder.path().join("dies.py"), program).expect("written");
    for (command, expected) in [("run", 3), ("doctor", 1), ("fuzz", 3)] {
        let (code, shown, errors) = run(&folder, &[command, "--target", "t"]);
        assert_eq!(code, Some(expected), "{command}: {shown}{errors}");
        let told = format!("{shown}{errors}");
        assert!(
            told.contains("bad token [redacted]") && !told.contains("a-long-secret"),
            "{command}: {told}"
        );
    }
}

/// A panic of one task need not end the server, nor fail a case: the run tells of it all the same.
#[test]
fn a_panic_that_the_server_survives_is_hinted_at() {
    let panic = "thread 'worker' panicked at src/router.rs:41:9:";
    let script = format!(
        "echo \"{panic}\" >&2; echo \"no entry\" >&2; exec BIN serve minicodex --listen 127.0.0.1:{{{{port}}}}"
    );
    let shell = format!("command = ['sh', '-c', '''{script}''']");
    let lines = SERVED.lines().map(|line| if line.starts_with("command") { shell.as_str() } else { line });
    let folder = folder(&lines.collect::<Vec<_>>().join("\n"));
    let (code, shown, errors) = run(&folder, &["run", "--target", "mine", "abort/idle"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    let hint = "hint: the output of the server tells of a failure that it survived: thread 'worker' panicked at src/router.rs:41:9: no entry";
    assert!(shown.contains(hint), "{shown}{errors}");
}
