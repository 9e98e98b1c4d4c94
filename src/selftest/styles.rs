//! Legal styles: the suite against a correct server that behaves otherwise than the plain one. Nothing may fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::protocol::Protocol;
use crate::reference::{Style, Variant, styles};
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{AT_ONCE, run_against, side_by_side};
use crate::synthesis::rng::SeededRng;

/// Most styles in one combination.
const MOST: usize = 6;

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Only these styles, each alone; empty: all of them.
    pub only: Vec<String>,
    /// Random combinations besides.
    pub combinations: usize,
    /// What chooses the combinations, and what the styles' own chance begins with.
    pub seed: u64,
}

/// Something that the suite held against a correct server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseAlarm {
    /// The case.
    pub case: String,
    /// The requirements that it calls broken, or the check where it names none.
    pub requirements: Vec<String>,
    /// Failed, warned or error.
    pub verdict: Verdict,
    /// What it says.
    pub message: String,
}

/// What the suite made of one variant of the correct server.
#[derive(Debug, Clone)]
pub struct StyleRun {
    /// The styles of the server.
    pub styles: Vec<&'static str>,
    /// The seed of their chance.
    pub seed: u64,
    /// What was held against it.
    pub alarms: Vec<FalseAlarm>,
    /// How many cases there were, by verdict.
    pub cases: BTreeMap<Verdict, usize>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl StyleRun {
    /// Nothing was held against the server.
    pub fn is_right(&self) -> bool {
        self.alarms.is_empty()
    }

    /// The server as `--style` names it.
    pub fn name(&self) -> String {
        if self.styles.is_empty() { "(plain)".to_owned() } else { self.styles.join(",") }
    }
}

/// Runs the suite against the correct server in each style, and in random combinations of them, and reports each to `sink`.
///
/// # Errors
/// See [`RunError`].
pub async fn selftest(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    plan: &Plan,
    sink: &mut (dyn FnMut(&StyleRun) + Send),
) -> Result<bool, RunError> {
    let mut right = true;
    let variants = variants(&styles(&protocol.name), plan).into_iter();
    let tries = variants.map(|chosen| one(protocol, cases, options, chosen, plan.seed));
    side_by_side(tries, AT_ONCE, |run| {
        right &= run.is_right();
        sink(&run);
    })
    .await?;
    Ok(right)
}

/// Each style alone, then the combinations.
fn variants(all: &[Style], plan: &Plan) -> Vec<Vec<Style>> {
    let wanted = |style: &&Style| plan.only.is_empty() || plan.only.iter().any(|name| name == style.name);
    let mut variants: Vec<Vec<Style>> = all.iter().filter(wanted).map(|style| vec![*style]).collect();
    for number in 0..plan.combinations {
        variants.push(combination(all, plan, number));
    }
    variants
}

/// A combination of two styles or more that go together. It depends on nothing but the seed and its number.
fn combination(all: &[Style], plan: &Plan, number: usize) -> Vec<Style> {
    let mut rng = SeededRng::new(plan.seed, number as u64);
    let count = 2 + rng.below(MOST - 1);
    let mut chosen: Vec<Style> = Vec::new();
    // Tries are bounded: there may be fewer styles that go together.
    for attempt in 0..4 * MOST {
        // Where styles were asked for, each combination has one of them.
        let asked = attempt == 0 && !plan.only.is_empty();
        let pool: Vec<&Style> =
            all.iter().filter(|style| !asked || plan.only.iter().any(|name| name == style.name)).collect();
        let Some(style) = pool.get(rng.below(pool.len())) else { continue };
        if chosen.len() < count && chosen.iter().all(|other| other.goes_with(style)) {
            chosen.push(**style);
        }
    }
    chosen
}

async fn one(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    styles: Vec<Style>,
    seed: u64,
) -> Result<StyleRun, RunError> {
    let names: Vec<String> = styles.iter().map(|style| style.name.to_owned()).collect();
    let variant = Variant { styles: names, seed, ..Variant::default() };
    let may_warn: BTreeSet<&str> = styles.iter().flat_map(|style| style.warns.iter().copied()).collect();
    let mut alarms = Vec::new();
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    let mut on_case = |report: &CaseReport| {
        *counts.entry(report.verdict).or_default() += 1;
        alarms.extend(false_alarms_of(report, &may_warn));
    };
    let summary = run_against(variant, protocol, cases.to_vec(), options.clone(), &mut on_case).await?;
    let styles = styles.iter().map(|style| style.name).collect();
    Ok(StyleRun { styles, seed, alarms, cases: counts, seconds: summary.seconds })
}

/// What a case holds against the server, except for warnings that the styles declare, however many they are.
fn false_alarms_of(report: &CaseReport, may_warn: &BTreeSet<&str>) -> Vec<FalseAlarm> {
    let declared = |failure: &Failure| {
        let ids = &failure.requirements;
        failure.verdict == Verdict::Warned
            && !ids.is_empty()
            && ids.iter().all(|id| may_warn.contains(id.as_str()))
    };
    // What is not listed is like what is.
    let is_all = report.failures.iter().all(|failure| declared(failure) || failure.is_note());
    let has_some = report.failures.iter().any(declared);
    let failures = report.failures.iter();
    let mut alarms: Vec<FalseAlarm> = failures
        .filter(|failure| !(declared(failure) || (is_all && has_some)))
        .map(|failure| FalseAlarm {
            case: report.case.clone(),
            requirements: match failure.requirements.is_empty() {
                true => vec![format!("({})", failure.check)],
                false => failure.requirements.clone(),
            },
            verdict: failure.verdict,
            message: failure.message.clone(),
        })
        .collect();
    if report.verdict == Verdict::Error && report.failures.is_empty() {
        alarms.push(FalseAlarm {
            case: report.case.clone(),
            requirements: Vec::new(),
            verdict: Verdict::Error,
            message: report.reason.clone().unwrap_or_default(),
        });
    }
    alarms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;

    #[test]
    fn combinations_hold_no_contradiction_and_come_again() {
        let style = |name, excludes| Style { name, what: "", allowed_by: &[], warns: &[], excludes };
        let all = [style("a", &["b"]), style("b", &[]), style("c", &[]), style("d", &[])];
        let plan = Plan { only: Vec::new(), combinations: 200, seed: 3 };
        let names = |styles: &[Style]| styles.iter().map(|style| style.name).collect::<Vec<_>>();
        let found: Vec<_> = variants(&all, &plan).iter().map(|styles| names(styles)).collect();
        let again: Vec<_> = variants(&all, &plan).iter().map(|styles| names(styles)).collect();
        assert_eq!(found, again);
        assert_eq!(found[..4], [["a"], ["b"], ["c"], ["d"]]);
        assert!(found[4..].iter().all(|names| names.len() > 1), "{found:?}");
        assert!(!found.iter().any(|names| names.contains(&"a") && names.contains(&"b")));
        let only = Plan { only: vec!["d".to_owned()], ..plan };
        assert!(variants(&all, &only).iter().all(|styles| names(styles).contains(&"d")));
    }

    #[test]
    fn only_declared_warnings_are_let_pass() {
        let failure = |verdict, ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            Failure::new(Check::Step, verdict, "no").breaking(&ids)
        };
        let held = |verdict, ids: &[&str]| {
            let report = CaseReport { failures: vec![failure(verdict, ids)], ..CaseReport::default() };
            false_alarms_of(&report, &BTreeSet::from(["X-1"])).len()
        };
        assert_eq!(held(Verdict::Warned, &["X-1"]), 0);
        assert_eq!(held(Verdict::Failed, &["X-1"]), 1);
        assert_eq!(held(Verdict::Warned, &["X-1", "X-2"]), 1);
        assert_eq!(held(Verdict::Warned, &[]), 1);
    }

    #[test]
    fn declared_warnings_may_be_more_than_are_listed() {
        let failure = |check, verdict, ids: &[String]| Failure::new(check, verdict, "no").breaking(ids);
        let warning = failure(Check::Step, Verdict::Warned, &["X-1".to_owned()]);
        let other = failure(Check::Step, Verdict::Failed, &["X-2".to_owned()]);
        let more = failure(Check::Limit, Verdict::Warned, &[]);
        let held = |failures: &[&Failure]| {
            let failures = failures.iter().map(|failure| (*failure).clone()).collect();
            false_alarms_of(&CaseReport { failures, ..CaseReport::default() }, &BTreeSet::from(["X-1"])).len()
        };
        assert_eq!(held(&[&warning, &more]), 0);
        assert_eq!(held(&[&more]), 1, "a bound that was reached without a declared warning");
        assert_eq!(held(&[&warning, &other, &more]), 2);
        assert_eq!(held(&[&warning, &failure(Check::Limit, Verdict::Failed, &[])]), 1);
    }
}
