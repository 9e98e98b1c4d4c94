//! What this machine has no more of is never the server's fault, and never a pass.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use super::process::{measured, measured_within};
use super::served::Served;
use super::server::{Behaviour, frame, said};
use crate::support::hand;
use crate::support::target::BINARY;

/// A command line of the binary in a shell that allows so many descriptors.
fn limited(descriptors: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &descriptors.to_string(), BINARY]).args(arguments);
    command
}

/// The same with another limit of a shell.
fn limited_by(limit: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh", BINARY]).args(arguments);
    // To print a stack needs memory, too.
    command.env("RUST_BACKTRACE", "0");
    command
}

#[test]
fn a_file_that_may_not_be_longer_loses_neither_verdict_nor_report() {
    for (command, too_long) in [
        (&["run", "minicodex", "handshake/*", "--trace", "t.ndjson", "--junit", "j.xml"][..], "t.ndjson"),
        (&["run", "minicodex", "handshake/*", "--json", "e.jsonl", "--junit", "j.xml"], "e.jsonl"),
        (&["fuzz", "minicodex", "--iterations", "16", "--json", "e.jsonl", "--junit", "j.xml"], "e.jsonl"),
        (&["explore", "minicodex", "--walks", "4", "--json", "e.jsonl", "--junit", "j.xml"], "e.jsonl"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        // 32 KiB; the file that is too long has more.
        let ran = measured_within(folder.path(), &mut limited_by("-f 64", command));
        assert_eq!(ran.code, Some(3), "{command:?}: {}", ran.shown());
        assert!(ran.shown().contains(too_long), "{command:?}: {}", ran.shown());
        assert!(ran.shown().contains("ulimit -f unlimited"), "{command:?}: {}", ran.shown());
        assert!(!folder.path().join(too_long).exists(), "{command:?}: a part of it is no file");
        let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("written");
        assert!(junit.ends_with("</testsuites>\n"), "{command:?}: {junit}");
        assert!(
            ran.out.contains("cases") || ran.out.contains("walks"),
            "{command:?} has no verdict: {}",
            ran.out
        );
    }
}

#[test]
fn servers_that_cannot_write_go_on_and_say_so() {
    let mut model = limited_by("-f 0", &["model", "--log", "log.jsonl"]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut served = Served::of(model.current_dir(folder.path()));
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close";
    for _ in 0..2 {
        let answer = served.answer(&format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    }
    let mut told = String::new();
    let mut errors = BufReader::new(served.child.stderr.take().expect("a pipe"));
    errors.read_line(&mut told).expect("told");
    assert!(told.contains("log.jsonl") && told.contains("File too large"), "{told}");
    assert_eq!(served.child.try_wait().expect("it can be asked"), None, "it lives");
}

/// KiB of address space that a process has.
#[cfg(target_os = "linux")]
fn reserved(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn a_lack_of_memory_is_named_as_ours_and_loses_no_report() {
    let idle = reserved(Served::start(&["serve", "minicodex"]).child.id());
    let large = said(&format!("[{}0]", "0,".repeat(500_000)));
    let url = Behaviour::answers(large).serve();
    // Too little to begin with. What threads reserve differs from run to run, so less and less is given: what is not
    // enough is always said, and some time it is not enough.
    for command in
        [&["run", "minicodex"][..], &["fuzz", "minicodex", "--iterations", "8"], &["explore", "minicodex"]]
    {
        let limits = (1..=16).rev().map(|sixteenths| (idle + (64 << 10)) * sixteenths / 16);
        let told = limits.map(|limit| {
            let folder = tempfile::tempdir().expect("a folder");
            let ran = measured_within(folder.path(), &mut limited_by(&format!("-v {limit}"), command));
            let name = format!("{command:?} with {limit} KiB");
            assert!(matches!(ran.code, Some(0 | 3)), "{name}: {:?} {}", ran.code, ran.shown());
            if ran.code == Some(3) {
                assert!(ran.shown().contains("no memory left for frameproof"), "{name}: {}", ran.shown());
                assert!(ran.shown().contains("ulimit -v"), "{name}: {}", ran.shown());
            }
            ran.code
        });
        assert!(told.into_iter().any(|code| code == Some(3)), "{command:?} always had enough");
    }
    // Enough for a while, or for all of it.
    let report = ["--url", &url, "--junit", "j.xml"];
    for command in [&["run", "minicodex"][..], &["fuzz", "minicodex", "--iterations", "8"]] {
        let command = [command, &report].concat();
        let (mut short, mut reports) = (0, 0);
        for more in [160, 640] {
            let folder = tempfile::tempdir().expect("a folder");
            let limit = format!("-v {}", idle + (more << 10));
            let ran = measured_within(folder.path(), &mut limited_by(&limit, &command));
            let name = format!("{command:?} with {more} MiB");
            assert!(matches!(ran.code, Some(1 | 3 | 4)), "{name}: {:?} {}", ran.code, ran.shown());
            let is_ours = ran.shown().contains("no memory left for frameproof");
            assert_eq!(is_ours, ran.code == Some(3), "{name}: {}", ran.shown());
            short += usize::from(is_ours);
            // It had begun.
            if ran.out.contains(" against ") {
                let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("written");
                assert!(junit.ends_with("</testsuites>\n"), "{name}: {junit}");
                reports += 1;
            }
        }
        assert!(short < 2 && reports > 0, "{command:?}: {short} of 2 had too little, {reports} reports");
    }
}

#[test]
fn a_lack_of_descriptors_is_named_as_ours_by_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in [
        &["run", "minicodex", "--junit", "j.xml"][..],
        &["run", "tinyvex", "--html", "p.html"],
        &["fuzz", "minicodex", "--iterations", "64"],
        &["explore", "minicodex", "--walks", "8"],
        &["selftest", "minicodex", "--fault", "executes-denied"],
    ] {
        // From hardly enough to begin to almost enough for all cases at a time.
        for descriptors in [4, 20, 24] {
            let ran = measured_within(folder.path(), &mut limited(descriptors, command));
            let name = format!("{command:?} with {descriptors} descriptors");
            assert_eq!(ran.code, Some(3), "{name}: {}", ran.shown());
            assert!(ran.shown().contains("no file descriptor left"), "{name}: {}", ran.shown());
            // What to do about it, and how many there may be.
            for advice in ["ulimit -n", "--jobs", &format!("this process may have {descriptors}")] {
                assert!(ran.shown().contains(advice), "{name}: {advice}: {}", ran.shown());
            }
            assert!(!ran.out.contains("FAIL") && !ran.out.contains("WARN"), "{name}: {}", ran.out);
            assert!(ran.took < Duration::from_secs(40), "{name}: {:?}", ran.took);
        }
    }
}

/// A command line of the binary as a user who may have so many processes and threads: root may have any number. None: this system, or its
/// user, cannot be somebody else.
#[cfg(target_os = "linux")]
fn with_processes(most: usize, arguments: &[&str]) -> Option<Command> {
    let command = |program: &[&str]| {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nproc={most}"))
            .args(["setpriv", "--reuid=61234", "--clear-groups"])
            .args(program);
        command
    };
    let can = command(&[BINARY, "--version"]).output().is_ok_and(|output| output.status.success());
    let mut whole = command(&[BINARY]);
    whole.args(arguments);
    can.then_some(whole)
}

#[cfg(target_os = "linux")]
#[test]
fn a_lack_of_processes_is_named_as_ours_by_every_command() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).expect("allowed");
    let commands = [
        &["run", "minicodex", "handshake/*", "--junit", "j.xml"][..],
        &["run"],
        &["fuzz", "minicodex", "--iterations", "8"],
        &["explore", "minicodex", "--walks", "2"],
        &["selftest", "minicodex", "--fault", "executes-denied"],
        &["doctor", "minicodex", "--url", "ws://127.0.0.1:1/"],
        &["serve", "minicodex"],
        &["model"],
    ];
    let is_ours = |name: &str, shown: &str| {
        for part in ["no process or thread left for frameproof", "ulimit -u", "--jobs"] {
            assert!(shown.contains(part), "{name}: {part}: {shown}");
        }
    };
    for command in commands {
        // Not even the threads to begin with.
        for most in [1, 2, 3] {
            let Some(mut limited) = with_processes(most, command) else { return };
            let ran = measured_within(folder.path(), &mut limited);
            let name = format!("{command:?} with {most} processes");
            assert_eq!(ran.code, Some(3), "{name}: {}", ran.shown());
            is_ours(&name, &ran.shown());
            assert!(ran.took < Duration::from_secs(40), "{name}: {:?}", ran.took);
        }
    }
    // Those that need no thread go on without.
    let mut list = with_processes(1, &["list", "minicodex"]).expect("as before");
    assert_eq!(measured_within(folder.path(), &mut list).code, Some(0));
    // From too few to enough: what is judged is right, and what is not is ours.
    let workers = std::thread::available_parallelism().expect("known").get();
    let mut codes = std::collections::BTreeSet::new();
    for most in workers..workers + 12 {
        let mut limited = with_processes(most, commands[0]).expect("as before");
        let ran = measured_within(folder.path(), &mut limited);
        let name = format!("a run with {most} processes");
        codes.insert(ran.code);
        match ran.code {
            Some(0) => assert!(ran.out.contains("conformant"), "{name}: {}", ran.shown()),
            Some(3) => is_ours(&name, &ran.shown()),
            other => panic!("{name}: {other:?}: {}", ran.shown()),
        }
    }
    assert_eq!(codes, [Some(0), Some(3)].into());
}

/// A folder that stands for that of the control groups, and the command line with which a program sees it there. None: this system, or
/// its user, cannot do that.
#[cfg(target_os = "linux")]
fn in_a_group_of(mebibytes: u64, folder: &std::path::Path, arguments: &[&str]) -> Option<Command> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = folder.join("groups").join(own.trim_start_matches("../").trim_start_matches(".."));
    std::fs::create_dir_all(&own).ok()?;
    std::fs::write(own.join("memory.max"), format!("{}\n", mebibytes << 20)).ok()?;
    let command = |program: &[&str]| {
        let mut command = Command::new("unshare");
        let mount = "mount --bind \"$0\" /sys/fs/cgroup && exec \"$@\"";
        command.args(["-r", "-m", "sh", "-c", mount]).arg(folder.join("groups")).args(program);
        command
    };
    let can = command(&["true"]).output().is_ok_and(|output| output.status.success());
    let mut whole = command(&[BINARY]);
    whole.args(arguments);
    can.then_some(whole)
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_container_that_is_used_is_named_as_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    let handshake = ["run", "minicodex", "handshake/*", "--reference", "--trace", "t.ndjson"];
    let run = |mebibytes: u64, arguments: &[&str]| {
        let mut command = in_a_group_of(mebibytes, folder.path(), arguments)?;
        Some(measured_within(folder.path(), &mut command))
    };
    // Enough of it changes nothing.
    let Some(ran) = run(1024, &handshake) else { return };
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    // Too little to begin with.
    for command in [
        &handshake[..],
        &["fuzz", "minicodex", "--iterations", "8"],
        &["explore", "minicodex", "--walks", "2"],
        &["check", "t.ndjson", "--protocol", "minicodex"],
    ] {
        let ran = run(16, command).expect("as before");
        assert_eq!(ran.code, Some(3), "{command:?}: {}", ran.shown());
        for part in [
            "no memory left for frameproof",
            "its control group may have 16 MiB",
            "the limit of the container",
        ] {
            assert!(ran.shown().contains(part), "{command:?}: {part}: {}", ran.shown());
        }
    }
    // Enough for a while, or for all of it.
    let large = said(&format!("[{}0]", "0,".repeat(500_000)));
    let url = Behaviour::answers(large).serve();
    for mebibytes in [72, 96, 640] {
        let _ = std::fs::remove_file(folder.path().join("j.xml"));
        let ran = run(mebibytes, &["run", "minicodex", "handshake/*", "--url", &url, "--junit", "j.xml"])
            .expect("as before");
        assert!(matches!(ran.code, Some(1 | 3)), "{mebibytes}: {:?} {}", ran.code, ran.shown());
        // Cases that have failed before stand.
        let is_ours = ran.shown().contains("no memory left for frameproof");
        assert!(is_ours || ran.code == Some(1), "{mebibytes}: {}", ran.shown());
        assert!(!is_ours || mebibytes < 640, "{}", ran.shown());
        if ran.out.contains(" against ") {
            let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("written");
            assert!(junit.ends_with("</testsuites>\n"), "{mebibytes}: {junit}");
        }
    }
}

/// Seconds of the processor that a process has used.
#[cfg(target_os = "linux")]
fn used(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_without_descriptors_waits_for_some_and_says_so() {
    for command in [&["serve", "minicodex"][..], &["model"]] {
        let mut served = Served::of(&mut limited(32, command));
        let connections: Vec<TcpStream> = (0..60).map(|_| served.connect()).collect();
        let mut told = String::new();
        let mut errors = BufReader::new(served.child.stderr.take().expect("a pipe"));
        errors.read_line(&mut told).expect("told");
        assert!(told.contains("no file descriptor left") && told.contains("ulimit -n"), "{told}");
        let (before, began) = (used(served.child.id()), Instant::now());
        // A server that turns round and round uses all of this time.
        std::thread::sleep(Duration::from_secs(1));
        let share = (used(served.child.id()) - before) / began.elapsed().as_secs_f64();
        assert!(share < 0.5, "{command:?} uses {share} of a processor");
        drop(connections);
        // Those who come when the others are gone are served.
        let answer = served.answer("GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 404"), "{command:?}: {answer}");
    }
}

/// A server at which every opening fails, each time in another way, so that no replay confirms the one before.
fn fails_by_turns() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    let ends = [
        frame(8, &1001u16.to_be_bytes()),
        said("[]"),
        said("{}"),
        frame(8, &1011u16.to_be_bytes()),
        said("x"),
    ];
    std::thread::spawn(move || {
        for (mut stream, end) in listener.incoming().flatten().zip(ends.into_iter().cycle()) {
            hand::upgrade_with(&mut stream, "");
            // The client's first message shows that something is sent all the same.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(&end);
        }
    });
    url
}

#[test]
fn a_campaign_that_fuzzed_nothing_is_no_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = fails_by_turns();
    let arguments =
        ["fuzz", "minicodex", "--url", &url, "--iterations", "16", "-j", "1", "--json", "e.jsonl"];
    let ran = measured(folder.path(), &arguments);
    assert!(ran.out.contains("0 findings in 16 cases"), "{}", ran.shown());
    assert!(!ran.out.contains(" and 0 messages"), "{}", ran.shown());
    assert_eq!(ran.code, Some(4), "{}", ran.shown());
    assert!(ran.err.contains("nothing was fuzzed"), "{}", ran.err);
    let events = std::fs::read_to_string(folder.path().join("e.jsonl")).expect("written");
    let cases = events.lines().filter(|line| line.contains(r#""event":"case-finished""#));
    let passed: Vec<&str> = cases.filter(|line| line.contains(r#""verdict":"passed""#)).collect();
    assert_eq!(passed, [""; 0]);
    // Given up before the first case was over.
    let mute = Behaviour::says(Vec::new()).serve();
    let ran = measured(folder.path(), &["fuzz", "minicodex", "--url", &mute, "--time", "1ms"]);
    assert!(matches!(ran.code, Some(1 | 3 | 4)), "{}", ran.shown());
}

/// Events of a run and a trace that take a while to read: the cases of the one, with further names, and the frames of the other, often.
#[cfg(target_os = "linux")]
fn long_recordings(folder: &std::path::Path) {
    let run = ["run", "minicodex", "handshake/*", "--reference", "--json", "e.jsonl", "--trace", "t.ndjson"];
    assert_eq!(measured(folder, &[&run[..], &["--shard", "1/1"]].concat()).code, Some(0));
    let events = std::fs::read_to_string(folder.join("e.jsonl")).expect("written");
    let lines: Vec<&str> = events.lines().collect();
    let case = lines.iter().find(|line| line.contains("\"case-finished\"")).expect("a case");
    let many = (0..20_000).map(|n| case.replace("\"handshake/", &format!("\"handshake/{n}-")));
    let all: Vec<String> = [lines[0].to_owned()].into_iter().chain(many).collect();
    std::fs::write(folder.join("many.jsonl"), all.join("\n") + "\n" + lines[lines.len() - 1] + "\n")
        .expect("written");
    let trace = std::fs::read_to_string(folder.join("t.ndjson")).expect("written");
    let frames: Vec<&str> = trace.lines().filter(|line| line.contains("\"text\"")).collect();
    std::fs::write(folder.join("many.ndjson"), (frames.join("\n") + "\n").repeat(2000)).expect("written");
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_read_recordings_name_limits_as_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    long_recordings(folder.path());
    for command in [
        &["report", "many.jsonl", "-q"][..],
        &["report", "many.jsonl", "--html", "p.html"],
        &["merge", "many.jsonl", "-q"],
        &["diff", "many.jsonl", "many.jsonl"],
        &["check", "many.ndjson", "--protocol", "minicodex"],
        // Short ones, which are read before a thread has begun.
        &["diff", "e.jsonl", "e.jsonl"],
        &["check", "t.ndjson", "--protocol", "minicodex"],
    ] {
        // Less than is kept free; what the shell and the binary need is there.
        let ran = measured_within(folder.path(), &mut limited_by("-v 98304", command));
        assert_eq!(ran.code, Some(3), "{command:?}: {}", ran.shown());
        assert!(ran.shown().contains("no memory left for frameproof"), "{command:?}: {}", ran.shown());
        assert!(ran.shown().contains("ulimit -v"), "{command:?}: {}", ran.shown());
        assert!(!folder.path().join("p.html").exists(), "{command:?}: a part of it is no file");
    }
    for command in [
        &["report", "many.jsonl", "--junit", "j.xml"][..],
        &["report", "many.jsonl", "--html", "j.xml"],
        &["merge", "many.jsonl", "--junit", "j.xml"],
        &["check", "many.ndjson", "--protocol", "minicodex", "--html", "j.xml"],
    ] {
        let ran = measured_within(folder.path(), &mut limited_by("-f 8", command));
        assert_eq!(ran.code, Some(3), "{command:?}: {}", ran.shown());
        assert!(ran.shown().contains("ulimit -f unlimited"), "{command:?}: {}", ran.shown());
        assert!(!folder.path().join("j.xml").exists(), "{command:?}: a part of it is no file");
    }
}

/// What must be left is what the command may take: to list what is embedded, no more than that needs.
#[test]
fn listing_needs_no_more_memory_than_it_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = measured(folder.path(), &["list"]);
    assert_eq!(whole.code, Some(0), "{}", whole.shown());
    let limited = |kibibytes: u32| {
        measured_within(folder.path(), &mut limited_by(&format!("-v {kibibytes}"), &["list"]))
    };
    let enough = limited(128 << 10);
    assert_eq!((enough.code, &enough.out), (Some(0), &whole.out), "{}", enough.shown());
    // From too little to begin with to what is used up on the way, wherever that is.
    for kibibytes in (62 << 10..74 << 10).step_by(512) {
        let ran = limited(kibibytes);
        assert_eq!(ran.code, Some(3), "{kibibytes}: {}", ran.shown());
        assert!(ran.shown().contains("no memory left for frameproof"), "{kibibytes}: {}", ran.shown());
    }
}

/// A report that is ordered by causes shows of very many cases the first ones, and says so; the totals are those of all.
#[test]
fn reports_of_very_many_cases_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = |n: u32| {
        serde_json::json!({
            "event": "case-finished", "case": format!("a/{n}"), "title": "t", "file": "f.yaml", "line": 1, "covers": [],
            "verdict": "failed", "seconds": 0.1, "started": 0.0, "reproduce": "x", "earlier": [], "exercised": {}, "wire_omitted": 0,
            "failures": [{ "verdict": "failed", "check": "step", "requirements": [], "message": "m".repeat(1500), "frames": [] }],
            "wire": [{ "index": 0, "ms": 1.0, "client": "a", "dir": "<-", "kind": null, "text": "x".repeat(1000), "ambient": false }],
        })
    };
    let run = measured(
        folder.path(),
        &["run", "minicodex", "handshake/hello-*", "--reference", "--json", "e.jsonl"],
    );
    assert_eq!(run.code, Some(0), "{}", run.shown());
    let events = std::fs::read_to_string(folder.path().join("e.jsonl")).expect("written");
    let lines: Vec<&str> = events.lines().collect();
    let mut many = lines[0].to_owned() + "\n";
    (0..30_000).for_each(|n| many += &format!("{}\n", case(n)));
    // Of a run that was killed.
    std::fs::write(folder.path().join("killed.jsonl"), &many).expect("written");
    many += lines[lines.len() - 1];
    std::fs::write(folder.path().join("many.jsonl"), many + "\n").expect("written");
    for command in [
        &["report", "killed.jsonl", "--html", "k.html", "--summary", "k.md"][..],
        &["report", "many.jsonl", "--html", "p.html", "--summary", "s.md"],
        &["diff", "many.jsonl", "e.jsonl", "-q"],
    ] {
        let ran = measured(folder.path(), command);
        assert!(matches!(ran.code, Some(0 | 1)), "{command:?}: {}", ran.shown());
        assert!(ran.peak() < 300, "{command:?}: {:?} MiB", ran.peak);
    }
    for name in ["p.html", "s.md", "k.html", "k.md"] {
        let page = std::fs::read_to_string(folder.path().join(name)).expect("written");
        assert!(page.contains("25000 cases are left out here"), "{name} says so");
    }
    let page = std::fs::read_to_string(folder.path().join("p.html")).expect("written");
    assert!(page.contains("case=minicodex/a/1\"") && !page.contains("a/29999<"), "the first ones are there");
}
