//! The scripted model under the providers' own Python SDKs, `openai` and `anthropic`: `tests/sdks/sdks.py`.

use std::path::Path;
use std::process::Command;

use crate::support::sdks::{no_proxies, python};
use crate::support::{Served, text};

/// How many tests the script has: fewer would be tests that were lost on the way.
const TESTS: usize = 71;

#[test]
fn the_providers_own_sdks_understand_it() {
    let what = "the scripted model was not tried with the providers' SDKs";
    let Some(python) = python("openai, anthropic", what) else { return };
    let model = Served::command("model", &[]);
    let output = Command::new(python)
        .args(["-W", "ignore", "-m", "unittest", "-v", "sdks"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks"))
        .env("OPENAI_BASE_URL", format!("{}/v1", model.url))
        .env("OPENAI_API_KEY", "any")
        .env("ANTHROPIC_BASE_URL", &model.url)
        .env("ANTHROPIC_API_KEY", "any")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(no_proxies())
        .output()
        .expect("it runs");
    let shown = text(&output.stderr);
    assert!(output.status.success(), "{shown}{}", text(&output.stdout));
    assert!(shown.contains(&format!("Ran {TESTS} tests")), "{shown}");
    assert!(!shown.contains("skipped="), "{shown}");
}
