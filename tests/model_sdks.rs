//! The scripted model under the providers' own Python SDKs, `openai` and `anthropic`: `tests/sdks/sdks.py`.
//!
//! `.ci/run` installs them into `target/sdks`; another Python that has them is named by `FRAMEPROOF_SDK_PYTHON`. Without one
//! the test says loudly that it is skipped, and fails if `FRAMEPROOF_REQUIRE_SDKS` is set.

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Served, text};

/// How many tests the script has: fewer would be tests that were lost on the way.
const TESTS: usize = 71;

fn python() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("FRAMEPROOF_SDK_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| root.join("target/sdks/bin/python"));
    let import = Command::new(&python)
        .args(["-c", "import openai, anthropic"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match import {
        Ok(status) if status.success() => Ok(python),
        Ok(_) => Err(format!("{} has no openai and anthropic", python.display())),
        Err(error) => Err(format!("{}: {error}", python.display())),
    }
}

#[test]
fn the_providers_own_sdks_understand_it() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => {
            assert!(std::env::var_os("FRAMEPROOF_REQUIRE_SDKS").is_none(), "the SDKs are required: {reason}");
            // Not `eprintln!`, which is not shown for a test that passes.
            let _ = writeln!(
                std::io::stderr(),
                "\n!!! SKIPPED: the scripted model was not tried with the providers' SDKs: {reason}\n\
                 !!! python3 -m venv target/sdks && target/sdks/bin/pip install -r tests/sdks/requirements.txt"
            );
            return;
        }
    };
    let model = Served::command("model", &[]);
    let output = Command::new(python)
        .args(["-W", "ignore", "-m", "unittest", "-v", "sdks"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks"))
        .env("OPENAI_BASE_URL", format!("{}/v1", model.url))
        .env("OPENAI_API_KEY", "any")
        .env("ANTHROPIC_BASE_URL", &model.url)
        .env("ANTHROPIC_API_KEY", "any")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // What would lead the SDKs elsewhere.
        .envs(
            ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
                .map(|name| (name, "")),
        )
        .output()
        .expect("it runs");
    let shown = text(&output.stderr);
    assert!(output.status.success(), "{shown}{}", text(&output.stdout));
    assert!(shown.contains(&format!("Ran {TESTS} tests")), "{shown}");
    assert!(!shown.contains("skipped="), "{shown}");
}
