//! The pages as a browser takes them: its console stays empty, our script runs and none of a server's, and nothing is asked for.
//!
//! Without Chromium these tests say loudly that they are skipped, and fail if `FRAMEPROOF_REQUIRE_CHROMIUM` is set.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use frameproof::report::html::render;
use frameproof::results::event::{RunEvent, Verdict};

use crate::html::{HOSTILE, case, events, started, written};
use crate::support::{Served, frameproof, hand, text};

/// A browser; none: the test is to be skipped, and has said so.
fn chromium(what: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let mut found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = found.find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("FRAMEPROOF_REQUIRE_CHROMIUM").is_none(), "{what}: there is no Chromium");
        // Past the capture of the test harness.
        drop(writeln!(
            std::io::stderr(),
            "\n!!! SKIPPED: {what}: there is no Chromium (apt-get install chromium)"
        ));
    }
    found
}

/// What a browser makes of a page, and what it tells meanwhile. `hash`: what of the page is asked for.
fn browsed(browser: &Path, folder: &Path, page: &str, hash: &str) -> (String, String) {
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        // For `driven`: a page in a frame of another file.
        .arg("--allow-file-access-from-files")
        .args(["--virtual-time-budget=2000", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}{hash}", folder.join(page).display()))
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.join("log")).expect("a log"))
        .spawn()
        .expect("the browser runs");
    let mut dom = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut dom).expect("text");
    child.wait().expect("it ends");
    (dom, written(folder, "log"))
}

/// Opens a page: our script has run, and the console is empty. The result is the page as it is then.
fn opened(browser: &Path, folder: &Path, page: &str, hash: &str) -> String {
    let (dom, log) = browsed(browser, folder, page, hash);
    assert!(dom.contains("</html>"), "{page}: {log}");
    assert!(!dom.contains("<title>owned"), "{page}: a script of the server's ran");
    assert!(dom.contains("<form id=\"filter\" role=\"search\">"), "{page}: our script has not run: {log}");
    assert!(!log.contains("CONSOLE"), "{page}: {log}");
    dom
}

/// A run with so many failures, each with a cause of its own, and so many cases that passed.
fn mixed(failed: usize, passed: usize) -> Vec<RunEvent> {
    let begin = RunEvent::RunStarted(Box::new(started("chat")));
    let failed = (0..failed).map(|number| {
        case(&format!("case-{number}"), Verdict::Failed, &format!("it broke, number {number}"))
    });
    let passed = (0..passed).map(|number| case(&format!("good-{number}"), Verdict::Passed, ""));
    let finished = failed.chain(passed).map(|case| RunEvent::CaseFinished(Box::new(case)));
    std::iter::once(begin).chain(finished).collect()
}

fn ran(folder: &Path, code: i32, arguments: &[&str]) {
    let output = frameproof(folder, arguments);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn a_browser_runs_our_script_and_none_of_a_servers() {
    let Some(browser) = chromium("pages with hostile text") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    // What a page would have to ask for is asked of nobody.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let url = hand::altered(&server.url, |text| {
        let said = r#"{"type":"</pre><script>document.title='owned'</script>","x":"\u202e"#;
        text.replacen("{\"type\":\"", said, 1)
    });
    ran(
        folder.path(),
        1,
        &["run", "minicodex", "--url", &url, "--case", "abort/*", "--html", "run.html", "--quiet"],
    );
    let fuzz = [
        "fuzz",
        "minicodex",
        "--url",
        &url,
        "--iterations",
        "4",
        "--time",
        "20s",
        "--html",
        "fuzz.html",
        "--quiet",
    ];
    let output = frameproof(folder.path(), &fuzz);
    assert!(folder.path().join("fuzz.html").is_file(), "{}{}", text(&output.stdout), text(&output.stderr));
    let image =
        format!("<img src='http://127.0.0.1:{port}/'><link rel=stylesheet href='http://127.0.0.1:{port}/'>");
    let long = format!("{HOSTILE}{image}{}", "x<\u{202e}".repeat(200_000));
    fs::write(folder.path().join("made.html"), render(&events(&format!("{HOSTILE}{image}"))))
        .expect("written");
    fs::write(folder.path().join("long.html"), render(&events(&long))).expect("written");
    for page in ["run.html", "fuzz.html", "made.html", "long.html"] {
        opened(&browser, folder.path(), page, "");
    }
    assert!(listener.accept().is_err(), "a page has asked for something");
}

/// What a script of a person's says after it has used a page. It sees the page's document as `page`, and `key(name)` presses a key
/// on what has the focus; its value is the result.
fn driven(browser: &Path, folder: &Path, page: &str, script: &str) -> String {
    let around = format!(
        r#"<!DOCTYPE html><title>driver</title><iframe src="{page}" width="1200" height="900"></iframe><script>
onload = () => {{
  const frame = document.querySelector('iframe').contentWindow, page = frame.document;
  frame.focus();
  const key = name => page.activeElement.dispatchEvent(
    new frame.KeyboardEvent('keydown', {{ key: name, bubbles: true, cancelable: true }}));
  const value = (() => {{ {script} }})();
  const said = document.createElement('pre');
  said.id = 'said';
  said.textContent = JSON.stringify(value);
  document.body.append(said);
}};
</script>"#
    );
    fs::write(folder.join("driver.html"), around).expect("written");
    let (dom, log) = browsed(browser, folder, "driver.html", "");
    let said = dom.split_once("<pre id=\"said\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    said.unwrap_or_else(|| panic!("{script}: {dom}\n{log}")).0.to_owned()
}

/// Words and a verdict choose what is shown and say how much it is; Escape shows all again.
#[test]
fn the_filter_shows_what_is_asked_for() {
    let Some(browser) = chromium("the filter") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("run.html"), render(&mixed(3, 2))).expect("written");
    let asked = |script: &str| {
        let tools = "const text = page.getElementById('text'), verdict = page.getElementById('verdict');
            const say = (field, value) => { field.value = value;
              field.dispatchEvent(new frame.Event(field === text ? 'input' : 'change', { bubbles: true })); };
            const cases = () => [...page.querySelectorAll('.item[id^=\"case=\"]')].filter(row => !row.hidden).length;
            const stories = () => [...page.querySelectorAll('.story')].filter(story => !story.hidden).length;
            const shown = () => page.getElementById('shown').textContent;";
        driven(&browser, folder, "run.html", &format!("{tools} {script}"))
    };
    assert_eq!(asked("return [cases(), stories(), shown()];"), r#"[5,3,""]"#, "all of it");
    let found = asked("say(text, 'BROKE Case-2'); return [stories(), cases()];");
    assert_eq!(found, "[1,1]", "each word counts, in any case of letters");
    assert_eq!(asked("say(text, 'no-such-word'); return [cases(), stories()];"), "[0,0]");
    assert_eq!(asked("say(verdict, 'passed'); return [cases(), stories()];"), "[2,0]");
    assert_eq!(asked("say(verdict, 'failed'); return [cases(), stories()];"), "[3,3]");
    let back = asked(
        "say(text, 'no-such-word'); text.focus(); key('Escape'); return [cases(), stories(), shown()];",
    );
    assert_eq!(back, r#"[5,3,""]"#);
}

/// `j` and `k` step through the failures, and not past an end; `/` goes to the filter, where they are letters.
#[test]
fn keys_lead_from_failure_to_failure() {
    let Some(browser) = chromium("the keyboard") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("run.html"), render(&mixed(3, 2))).expect("written");
    let at = "const at = () => [...page.querySelectorAll('.story')].indexOf(page.activeElement);";
    let pressed = |keys: &str| {
        let script = format!("{at} return [...'{keys}'].map(name => {{ key(name); return at(); }});");
        driven(&browser, folder, "run.html", &script)
    };
    assert_eq!(pressed("jjjjkk"), "[0,1,2,2,1,0]");
    assert_eq!(pressed("kk"), "[2,1]", "from the end");
    let typed = driven(
        &browser,
        folder,
        "run.html",
        &format!("{at} key('j'); key('/'); const id = page.activeElement.id; key('j'); return [id, at()];"),
    );
    assert_eq!(typed, r#"["text",-1]"#);
}

/// The pages of a conformant run, of one with 40 failures, of a campaign, of a merge, of a recording that was judged, and of two
/// recordings side by side.
#[test]
fn the_console_of_a_browser_stays_empty() {
    let Some(browser) = chromium("pages of all kinds") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    ran(at, 0, &["run", "tinyvex", "--html", "whole.html", "--quiet"]);
    ran(at, 0, &["run", "--case", "*/*ping*", "--html", "all.html", "--html-frames", "all", "--quiet"]);
    for (trace, fault) in [("a.ndjson", &[][..]), ("b.ndjson", &["--fault", "executes-denied"])] {
        let run = ["run", "minicodex", "--case", "approval/deny-*", "--trace", trace, "--quiet"];
        ran(at, i32::from(!fault.is_empty()), &[&run, fault].concat());
    }
    ran(at, 1, &["check", "b.ndjson", "--protocol", "minicodex", "--html", "check.html"]);
    ran(at, 1, &["diff", "a.ndjson", "b.ndjson", "--protocol", "minicodex", "--html", "diff.html"]);
    ran(
        at,
        1,
        &[
            "fuzz",
            "minicodex",
            "--fault",
            "fuzz-number-for-text",
            "--reading",
            "lenient",
            "--iterations",
            "64",
            "--max-findings",
            "1",
            "--html",
            "fuzz.html",
            "--quiet",
        ],
    );
    let shards = ["1/4", "2/4", "3/4", "4/4"];
    let files = shards.map(|shard| format!("{}.jsonl", &shard[..1]));
    for (shard, file) in shards.iter().zip(&files) {
        ran(
            at,
            0,
            &["run", "minicodex", "--case", "approval/*", "--shard", shard, "--json", file, "--quiet"],
        );
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    ran(at, 0, &[&["merge"], &files[..], &["--html", "merged.html", "--quiet"]].concat());
    fs::write(at.join("failed.html"), render(&mixed(40, 0))).expect("written");
    for (page, part) in [
        ("all.html", "Nothing failed"),
        ("whole.html", "Nothing failed"),
        ("check.html", "MC-APR-8"),
        ("fuzz.html", "<h2 id=\"coverage-h\">Commands by state</h2>"),
        ("merged.html", "conformant"),
        ("failed.html", "40 causes"),
    ] {
        let dom = opened(&browser, at, page, "");
        assert!(dom.contains(part), "{page}: {part}");
    }
    let (dom, log) = browsed(&browser, at, "diff.html", "");
    assert!(dom.contains("</html>") && dom.contains("function_call_output"), "{log}");
    assert!(!log.contains("CONSOLE"), "{log}");
    let fuzzed = written(at, "fuzz.html");
    assert!(fuzzed.contains("<ol class=\"steps\"><li><b>alice</b> send ("), "the steps of the finding");
}

/// A link leads to a case in a list that is closed, and a button copies each command.
#[test]
fn links_lead_to_what_is_closed() {
    let Some(browser) = chromium("deep links") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    ran(folder.path(), 0, &["run", "--case", "*/*ping*", "--html", "run.html", "--quiet"]);
    let page = written(folder.path(), "run.html");
    let (_, id) = page.split_once("<tr class=\"item\" id=\"case=minicodex/").expect("a case");
    let (id, _) = id.split_once('"').expect("its end");
    assert_eq!(page.matches("<details class=\"cases group\" open").count(), 0, "all closed");
    let dom = opened(&browser, folder.path(), "run.html", &format!("#case=minicodex/{id}"));
    assert_eq!(dom.matches("<details class=\"cases group\" open").count(), 1, "one is open");
}
