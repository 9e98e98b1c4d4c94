//! `selftest --report` and `selftest --table`: what was found, as a file and as a table.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Selftest;
use crate::cli::source::Suite;
use crate::cli::{Failure, harness, nothing, unreadable, unwritable, usage};
use crate::exit::Exit;
use crate::output::{self, Output};
use crate::report::kills;
use crate::selftest::report::{Kills, Report, SuiteReport, part};

/// The file that is written, and what it is to say.
#[derive(Debug, Default)]
pub(super) struct Reporting {
    file: Option<PathBuf>,
    report: Mutex<Report>,
}

impl Reporting {
    /// Begins with what the file says already.
    pub fn begin(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self::default()) };
        let report = if path.exists() { read(path)? } else { Report::default() };
        let name = path.display();
        Output::check(path).map_err(|error| unwritable(format!("{name} cannot be written: {error}")))?;
        Ok(Self { file: Some(path.to_owned()), report: Mutex::new(report) })
    }

    /// Enters what a part has found of a suite, and writes the file.
    pub fn enter(&self, suite: &Suite, enter: impl FnOnce(&mut SuiteReport)) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        enter(report.suites.entry(suite.protocol.name.clone()).or_default());
        // A report always serialises.
        let text = serde_json::to_string(&*report).unwrap_or_default() + "\n";
        output::replace(file, &text)
            .map_err(|error| harness(format!("{} cannot be written: {error}", file.display()), ""))
    }
}

pub(super) fn read(path: &Path) -> Result<Report, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        let hint = "it must be one that `frameproof selftest --report FILE` wrote, or not be there yet";
        usage(format!("{name} is no report of a self-test: {error}"), hint)
    })
}

impl Selftest {
    /// Enters the defects of a part.
    pub(super) fn enter_kills(&self, suite: &Suite, name: &str, kills: Kills) -> Result<(), Failure> {
        self.reporting.enter(suite, |of| drop(of.defects.insert(part(name, &self.style), kills)))
    }

    /// Prints the tables of a report.
    pub(super) fn print_table(&self, suites: &[Suite], file: &Path) -> Result<Exit, Failure> {
        let report = read(file)?;
        let mut out = crate::cli::out();
        let mut any = false;
        for suite in suites {
            let Some(of) = report.suites.get(&suite.protocol.name) else { continue };
            any = true;
            if suites.len() > 1 {
                writeln!(out, "## {}\n", suite.protocol.name)?;
            }
            writeln!(out, "{}", kills::tables(of, &suite.protocol).trim_end())?;
        }
        if any {
            return Ok(Exit::Passed);
        }
        let there: Vec<&str> = report.suites.keys().map(String::as_str).collect();
        let hint = format!("it has {}", there.join(", "));
        Err(nothing(format!("{} says nothing of this suite", file.display()), &hint))
    }
}
