//! A Python that has the providers' SDKs.
//!
//! `.ci/run` installs them into `target/sdks`; another Python that has them is named by `FRAMEPROOF_SDK_PYTHON`. Without one
//! a test says loudly that it is skipped, and fails if `FRAMEPROOF_REQUIRE_SDKS` is set.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The Python that can import these modules; none: the test is to be skipped, and has said so.
pub fn python(modules: &str, what: &str) -> Option<PathBuf> {
    let reason = match find(modules) {
        Ok(python) => return Some(python),
        Err(reason) => reason,
    };
    assert!(std::env::var_os("FRAMEPROOF_REQUIRE_SDKS").is_none(), "the SDKs are required: {reason}");
    // Not `eprintln!`, which is not shown for a test that passes.
    let _ = writeln!(
        std::io::stderr(),
        "\n!!! SKIPPED: {what}: {reason}\n!!! python3 -m venv target/sdks && target/sdks/bin/pip install -r tests/sdks/requirements.txt \
         -r examples/agents/minicodex/requirements.txt -r examples/agents/codey/requirements.txt"
    );
    None
}

fn find(modules: &str) -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("FRAMEPROOF_SDK_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| root.join("target/sdks/bin/python"));
    let import = Command::new(&python)
        .args(["-c", &format!("import {modules}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match import {
        Ok(status) if status.success() => Ok(python),
        Ok(_) => Err(format!("{} cannot import {modules}", python.display())),
        Err(error) => Err(format!("{}: {error}", python.display())),
    }
}

/// What would lead the SDKs elsewhere than to the address that they are given, emptied.
pub fn no_proxies() -> [(&'static str, &'static str); 6] {
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
        .map(|name| (name, ""))
}
