//! Campaigns against a target that frameproof launches.

use std::path::Path;

use super::{frameproof, text};

/// A folder with a target `mine`: the reference server of a protocol, with these further arguments.
pub fn folder(protocol: &str, arguments: &str, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = env!("CARGO_BIN_EXE_frameproof");
    let config = format!(
        "[target.mine]\nprotocol = '{protocol}'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\n\
         command = ['{binary}', 'serve', '{protocol}', '--listen', '127.0.0.1:{{{{port}}}}'{arguments}]\n{more}"
    );
    std::fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    folder
}

/// The exit code of a campaign against it, and what it says.
pub fn fuzz(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        frameproof(folder, &[&["fuzz", "--target", "mine", "--timeout-scale", "4"], arguments].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The one finding's file.
pub fn finding(folder: &Path, protocol: &str) -> String {
    let reports = folder.join(format!("reports/fuzz-{protocol}"));
    let mut found = std::fs::read_dir(reports).expect("findings").flatten();
    found.next().expect("a finding").path().display().to_string()
}
