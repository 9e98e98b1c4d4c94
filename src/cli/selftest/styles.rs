//! `frameproof selftest --styles`.

use std::io::Write;

use super::super::source::Suite;
use super::super::{Failure, did_you_mean, nothing, usage};
use super::driver::{broken, on_each_suite};
use super::{Selftest, Tally};
use crate::exit::Exit;
use crate::reference;
use crate::report::escape;
use crate::results::event::Verdict;
use crate::selftest::report::Styles;
use crate::selftest::styles::{FalseAlarm, Plan, StyleRun, selftest};

impl Selftest {
    pub(super) fn styles(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_styles(suites)?;
        let plan = Plan { only: self.style.clone(), combinations: self.combinations, seed: self.seed };
        let mut out = crate::cli::out();
        let mut tally = Tally::default();
        let show = |out: &mut _, run: &StyleRun| {
            tally.add(run.is_right());
            show(out, run)
        };
        let options = self.options();
        on_each_suite(suites, &mut out, show, async |suite, sink| {
            let mut styles = Styles::new(self.combinations, self.seed);
            let mut count = |run: &StyleRun| {
                styles.add(run);
                sink(run);
            };
            selftest(&suite.protocol, &suite.cases, &options, &plan, &mut count).await.map_err(broken)?;
            self.reporting.enter(suite, |of| of.styles = Some(styles))
        })?;
        Ok(tally.close(&mut out, "styles and combinations passed")?)
    }

    pub(super) fn check_styles(&self, suites: &[Suite]) -> Result<(), Failure> {
        let all: Vec<_> = suites.iter().flat_map(|suite| reference::styles(&suite.protocol.name)).collect();
        if all.is_empty() {
            let hint = format!("there are reference servers for {}", reference::names().join(", "));
            return Err(nothing("there is no reference server for this protocol", &hint));
        }
        let known = || all.iter().map(|style| style.name);
        let Some(unknown) = self.style.iter().find(|name| !known().any(|style| style == **name)) else {
            return Ok(());
        };
        let lists = || "`frameproof serve NAME --list-styles` lists them".to_owned();
        let hint = did_you_mean(unknown, known(), lists);
        Err(usage(format!("unknown style `{unknown}`"), &hint))
    }
}

fn show(out: &mut impl Write, run: &StyleRun) -> std::io::Result<()> {
    let word = if run.is_right() { "passed" } else { "FAILED" };
    let count = |verdict| run.cases.get(&verdict).copied().unwrap_or_default();
    let (passed, idle) = (count(Verdict::Passed), count(Verdict::NotApplicable));
    write!(out, "{word}  {:<32} {passed} passed", run.name())?;
    if idle > 0 {
        write!(out, ", {idle} not applicable")?;
    }
    writeln!(out, ", {:.1} s", run.seconds)?;
    for alarm in &run.alarms {
        line(out, alarm)?;
    }
    out.flush()
}

/// A false alarm is rare, and may not come again: what it says is always shown.
fn line(out: &mut impl Write, alarm: &FalseAlarm) -> std::io::Result<()> {
    let what = match alarm.verdict {
        Verdict::Warned => "warned",
        Verdict::Error => "error",
        _ => "failed",
    };
    writeln!(out, "        {what}: {}  {}", alarm.case, alarm.requirements.join(" "))?;
    writeln!(out, "                {}", escape::terminal(&alarm.message))
}
