//! Known failures: a file that excuses them, and complains when they are gone.

mod pattern;
mod write;

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::path::Path;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::results::case_id;
use crate::results::event::Failure;
use crate::source::{Diagnostic, Diagnostics, Document, Part, decode, nearest};

use pattern::Pattern;
pub use write::write;

/// The case in whose name servers that died while no case failed by it are reported.
pub(crate) const LIVES_ON: &str = "target/lives-on";
/// What frameproof itself reports as cases.
const OWN: [&str; 3] = [LIVES_ON, "target/sessions-apart", "target/step"];

/// Notes about mistyped entries that come with advice, which is a search each.
const ADVISED: usize = 50;

/// A baseline file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineFile {
    /// The known failures.
    pub known: Vec<BaselineEntry>,
}

/// One known failure. `case`, `match` and `message` must all fit; `case` or `match` must be there.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
    /// A glob over case ids (`abort/*`): failures of other cases are not excused. A case that it names is meant behind preambles
    /// (`abort/idle@history`), too. Default: any case.
    #[serde(default)]
    pub case: Option<String>,
    /// A glob over requirement ids (`MC-ABT-*`) or case ids (`abort/*`). Default: whatever the failure breaks.
    #[serde(rename = "match", default)]
    pub pattern: Option<String>,
    /// Part of the failure's message: another failure of the same requirement is not excused.
    #[serde(default)]
    pub message: String,
    /// How many such failures of one case are excused: one more fails the run. Default: any number.
    #[serde(default)]
    pub count: Option<NonZeroU32>,
    /// It fails in some runs only: that it did not fail is no reason to remove the entry. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sometimes: bool,
    /// Why it is tolerated.
    pub reason: String,
    /// The last day on which it is excused, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A loaded baseline.
#[derive(Debug, Clone)]
pub struct Baseline {
    entries: Vec<Entry>,
    /// The entries about one case by its name; and those about any case, or about all that fit a glob.
    of_case: HashMap<String, Vec<usize>>,
    of_any: Vec<usize>,
    /// Only a part of the suite is run: an entry that it does not touch is not stale.
    pub partial: bool,
    /// The file.
    document: Option<Document>,
}

#[derive(Debug, Clone)]
struct Entry {
    known: BaselineEntry,
    case: Option<Pattern>,
    glob: Option<Pattern>,
    expired: bool,
}

/// Why a failure is excused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excuse<'b> {
    /// What the entry says.
    pub reason: &'b str,
    /// The entry's place in the file, from 0.
    pub entry: usize,
}

/// Tells what is wrong at a field of an entry.
type Wrong<'w> = dyn FnMut(&str, Diagnostic) + 'w;

impl Entry {
    fn new(known: BaselineEntry, today: &str, wrong: &mut Wrong<'_>) -> Self {
        if known.case.is_none() && known.pattern.is_none() {
            let error = Diagnostic::new("a known failure names a case, a requirement, or both");
            wrong(
                "",
                error.hint(
                    "`case` is a glob over cases (`abort/*`), `match` one over requirement ids (`MC-ABT-*`)",
                ),
            );
        }
        let expired = known.expires.as_deref().is_some_and(|date| {
            let Ok(expires) = date.parse::<Date>() else {
                let error = Diagnostic::new(format!("`{date}` is not a date"));
                wrong("/expires", error.hint("write YYYY-MM-DD"));
                return false;
            };
            today.parse::<Date>().is_ok_and(|today| expires < today)
        });
        if known.reason.trim().is_empty() {
            let hint = "say why the failure is tolerated, or where it is tracked";
            wrong("/reason", Diagnostic::new("a known failure needs a reason").hint(hint));
        }
        let mut glob = |field: &str, pattern: Option<&String>, hint: &str| {
            let pattern = pattern?;
            let compiled = Pattern::new(pattern).map_err(|error| {
                let error = Diagnostic::new(format!("`{pattern}` is not a glob: {}", error.kind()));
                wrong(field, error.hint(hint));
            });
            compiled.ok()
        };
        let case = glob("/case", known.case.as_ref(), "a glob over case ids (`abort/*`)");
        let hint = "a glob over requirement ids (`MC-ABT-*`) or case ids (`abort/*`)";
        let glob = glob("/match", known.pattern.as_ref(), hint);
        Self { known, case, glob, expired }
    }

    fn fits(&self, failure: &Failure, case: Option<&str>) -> bool {
        let is_case = |glob: &Pattern| {
            case.is_some_and(|case| glob.is_match(case) || glob.is_match(case_id::without_preamble(case)))
        };
        let breaks = |glob: &Pattern| failure.requirements.iter().any(|id| glob.is_match(id));
        let of_case = (case.is_none() && self.glob.is_some()) || self.case.as_ref().is_none_or(is_case);
        let named = self.glob.as_ref().is_none_or(|glob| is_case(glob) || breaks(glob));
        of_case && named && failure.message.contains(&self.known.message) && !self.expired
    }

    /// Whether it is about one of these cases and requirements.
    fn names(&self, ids: &BTreeSet<&str>) -> bool {
        let about = self.case.as_ref().or(self.glob.as_ref());
        about.is_some_and(|glob| glob.is_among(ids))
    }

    /// As messages call it.
    fn name(&self) -> String {
        let parts = [&self.known.case, &self.known.pattern].into_iter().flatten();
        let names = parts.map(|part| format!("`{part}`")).collect::<Vec<_>>().join(" ");
        match self.known.message.as_str() {
            "" => names,
            message => format!("{names} with \"{message}\""),
        }
    }
}

impl Baseline {
    /// Reads a baseline. Entries that expired before `today` (`YYYY-MM-DD`) excuse nothing.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with its place.
    pub fn load(path: &Path, today: &str) -> Result<Self, Diagnostics> {
        Self::from_document(&Document::read(path)?, today)
    }

    /// As [`Baseline::load`], from a file that has been read already.
    ///
    /// # Errors
    /// As [`Baseline::load`].
    pub fn from_document(document: &Document, today: &str) -> Result<Self, Diagnostics> {
        let file: BaselineFile = decode(document, "")?;
        let mut errors = Diagnostics::default();
        let entries = file.known.into_iter().enumerate().map(|(index, known)| {
            let mut wrong = |field: &str, diagnostic: Diagnostic| {
                errors.push(diagnostic.at(document, &format!("/known/{index}{field}"), Part::Value));
            };
            Entry::new(known, today, &mut wrong)
        });
        let entries: Vec<Entry> = entries.collect();
        let (mut of_case, mut of_any) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            match &entry.case {
                Some(Pattern::Name(name)) => of_case.entry(name.clone()).or_default().push(index),
                _ => of_any.push(index),
            }
        }
        errors.or(Self { entries, of_case, of_any, partial: false, document: Some(document.clone()) })
    }

    /// The entries that may be about a case, in the order of the file.
    fn about(&self, case: &str) -> Vec<usize> {
        let names = BTreeSet::from([case, case_id::without_preamble(case)]);
        let named = names.into_iter().filter_map(|name| self.of_case.get(name));
        let mut found: Vec<usize> = named.flatten().chain(&self.of_any).copied().collect();
        found.sort_unstable();
        found
    }

    /// What excuses each of a case's failures, if anything does, and all entries that have their use: two that fit the same failure
    /// both have.
    pub fn excuses(&self, case: &str, failures: &[Failure]) -> (Vec<Option<Excuse<'_>>>, BTreeSet<usize>) {
        let about = if failures.is_empty() { Vec::new() } else { self.about(case) };
        let fitting = |failure: &Failure| -> Vec<usize> {
            about.iter().copied().filter(|entry| self.entries[*entry].fits(failure, Some(case))).collect()
        };
        let fitting: Vec<Vec<usize>> = failures.iter().map(fitting).collect();
        // An entry with a count goes to failures that no other entry excuses first.
        let mut order: Vec<usize> = (0..failures.len()).collect();
        order.sort_by_key(|failure| fitting[*failure].len());
        let mut left: HashMap<usize, u32> = HashMap::new();
        let mut excuses = vec![None; failures.len()];
        for failure in order {
            let mut left_of = |entry: usize| {
                let count = self.entries[entry].known.count.map_or(u32::MAX, NonZeroU32::get);
                let left = left.entry(entry).or_insert(count);
                let is_left = *left > 0;
                *left = left.saturating_sub(1);
                is_left
            };
            if let Some(entry) = fitting[failure].iter().copied().find(|entry| left_of(*entry)) {
                excuses[failure] = Some(Excuse { reason: &self.entries[entry].known.reason, entry });
            }
        }
        (excuses, fitting.into_iter().flatten().collect())
    }

    /// The reason for which a failure is known that was seen in no case of the suite: what entries say of cases does not matter.
    pub fn reason_for(&self, case: &str, failure: &Failure) -> Option<&str> {
        let fits = |entry: &&Entry| entry.fits(failure, Some(case)) || entry.fits(failure, None);
        self.entries.iter().find(fits).map(|entry| entry.known.reason.as_str())
    }

    /// Whether an entry is about cases behind preambles.
    pub fn is_about_preambles(&self) -> bool {
        let patterns = self.entries.iter().flat_map(|entry| [&entry.known.case, &entry.known.pattern]);
        patterns.flatten().any(|pattern| pattern.contains(case_id::BEHIND))
    }

    /// Entries that name none of these cases and requirements, which are all that there are: they are mistyped. What is wrong, where it is
    /// written, and what was perhaps meant.
    pub fn mistyped<'i>(&self, ids: impl Iterator<Item = &'i str> + Clone) -> Vec<Diagnostic> {
        let ids = ids.chain(OWN);
        let known_ids: BTreeSet<&str> = ids.clone().collect();
        let Some(document) = &self.document else { return Vec::new() };
        let mut told = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let known = &entry.known;
            for (field, what, pattern, glob) in [
                ("case", "no case", &known.case, &entry.case),
                ("match", "no case and no requirement", &known.pattern, &entry.glob),
            ] {
                let (Some(pattern), Some(glob)) = (pattern, glob) else { continue };
                if glob.is_among(&known_ids) {
                    continue;
                }
                let note = Diagnostic::note(format!("the baseline's `{pattern}` names {what}"));
                let note = note.at(document, &format!("/known/{index}/{field}"), Part::Value);
                // Of very many only the first are shown: the others need no advice.
                if told.len() >= ADVISED {
                    told.push(note);
                    continue;
                }
                told.push(match nearest(pattern, ids.clone()) {
                    Some(near) => note.hint(format!("did you mean `{near}`?")),
                    None => note.hint(
                        "`frameproof list` shows the cases, `frameproof list --requirements` the requirements",
                    ),
                });
            }
        }
        told
    }

    /// Messages about the entries that excused nothing, and about those of them that say nothing of the server, for what they are
    /// about was not tried. `ran`: the cases and requirements that were touched by the run; `known`: those that there are.
    pub fn stale(
        &self,
        used: &BTreeSet<usize>,
        ran: &BTreeSet<&str>,
        known: &BTreeSet<&str>,
    ) -> (Vec<String>, Vec<String>) {
        let unused = self.entries.iter().enumerate().filter(|(index, _)| !used.contains(index));
        let unused = unused.map(|(_, entry)| entry);
        let (touched, rest): (Vec<&Entry>, Vec<&Entry>) =
            unused.partition(|entry| entry.expired || entry.names(ran));
        // Of a part of the suite nobody knows what else there is.
        let rest = rest.into_iter().filter(|_| !self.partial);
        let (untried, unknown): (Vec<&Entry>, Vec<&Entry>) = rest.partition(|entry| entry.names(known));
        let told = |entries: Vec<&Entry>, why: &str| -> Vec<String> {
            let told = entries.into_iter().map(|entry| {
                let why = match &entry.known.expires {
                    Some(date) if entry.expired => {
                        format!("expired on {date}: fix the server, or set a new date")
                    }
                    _ => why.to_owned(),
                };
                format!("{} ({}) {why}", entry.name(), entry.known.reason)
            });
            told.collect()
        };
        // A case may fail in some runs only: as long as the defect shows elsewhere, it is not gone.
        let still = |entry: &&Entry| {
            let same = |other: &Entry| other.known.pattern == entry.known.pattern;
            let of_case = entry.case.is_some() && entry.glob.is_some() && !entry.expired;
            of_case && used.iter().filter_map(|index| self.entries.get(*index)).any(same)
        };
        let (still, touched): (Vec<&Entry>, Vec<&Entry>) = touched.into_iter().partition(still);
        let (sometimes, touched): (Vec<&Entry>, Vec<&Entry>) =
            touched.into_iter().partition(|entry| entry.known.sometimes && !entry.expired);
        let mut stale = told(touched, "no longer fails: remove it");
        stale.extend(told(unknown, "names no existing case or requirement: is it mistyped?"));
        let mut hints = told(untried, "was not tried by this run");
        hints.extend(told(still, "did not fail this time, though the requirement is still broken elsewhere"));
        hints.extend(told(sometimes, "did not fail this time"));
        (stale, hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;
    use crate::results::event::Verdict;

    pub(super) fn read(text: &str, today: &str) -> Result<Baseline, Diagnostics> {
        Baseline::from_document(&Document::parse("b.yaml", text)?, today)
    }

    pub(super) fn failure(id: &str, message: &str) -> Failure {
        Failure::new(Check::Step, Verdict::Failed, message).breaking(&[id.to_owned()])
    }

    pub(super) fn excuses(baseline: &Baseline, case: &str, failures: &[Failure]) -> Vec<bool> {
        baseline.excuses(case, failures).0.iter().map(Option::is_some).collect()
    }

    #[test]
    fn an_entry_excuses_what_it_names_and_nothing_else() {
        let text = "known:\n  - { match: 'A-*', message: came late, reason: bug 1, expires: 2030-01-31 }\n";
        for (case, id, message, today, excused) in [
            ("f/c", "A-1", "it came late by 3 s", "2029-01-01", true),
            ("f/c", "A-1", "it came late by 3 s", "2030-01-31", true),
            ("f/c", "A-1", "it came late by 3 s", "2030-02-01", false),
            ("f/c", "A-1", "it never came", "2029-01-01", false),
            ("f/c", "B-1", "it came late", "2029-01-01", false),
            ("A-file/c", "B-1", "it came late", "2029-01-01", true),
        ] {
            let baseline = read(text, today).expect("valid");
            assert_eq!(
                excuses(&baseline, case, &[failure(id, message)]),
                [excused],
                "{case} {id} {message} {today}"
            );
        }
    }

    #[test]
    fn a_case_that_is_named_is_excused_behind_preambles_too() {
        let text = |case: &str| format!("known:\n  - {{ case: '{case}', match: A-1, reason: r }}\n");
        for (named, case, excused) in [
            ("f/c", "f/c", true),
            ("f/c", "f/c@history", true),
            ("f/c*", "f/c@history", true),
            ("f/[c]", "f/c@history", true),
            ("f/c@history", "f/c@history", true),
            ("f/c@history", "f/c", false),
            ("f/c@history", "f/c@variety", false),
            ("f/c", "f/cd@history", false),
        ] {
            let baseline = read(&text(named), "2030-01-01").expect("valid");
            assert_eq!(excuses(&baseline, case, &[failure("A-1", "m")]), [excused], "{named} {case}");
        }
    }

    #[test]
    fn of_very_many_entries_only_those_of_a_case_are_looked_at() {
        let entry = |case: &str| format!("  - {{ case: '{case}', match: A-1, reason: r }}\n");
        let names: String = (0..5000).map(|n| entry(&format!("f/c{n}"))).collect();
        let baseline = read(&format!("known:\n{names}{}{}", entry("f/*7"), entry("f/c17")), "2030-01-01");
        let baseline = baseline.expect("valid");
        assert_eq!(baseline.about("f/c17"), [17, 5000, 5001]);
        let failures = [failure("A-1", "m"), failure("B-1", "m")];
        let (excuses, used) = baseline.excuses("f/c17", &failures);
        assert_eq!(excuses.iter().map(|one| one.map(|one| one.entry)).collect::<Vec<_>>(), [Some(17), None]);
        assert_eq!(used, BTreeSet::from([17, 5000, 5001]));
        assert_eq!(baseline.mistyped(["f/c17", "A-1"].into_iter()).len(), 4999);
    }

    #[test]
    fn what_is_no_longer_needed_is_stale() {
        let text = "known:\n  - { match: A-1, reason: r }\n  - { match: B-1, reason: r }\n  - { match: C-1, reason: r, expires: 2020-01-01 }\n";
        let mut baseline = read(text, "2030-01-01").expect("valid");
        let used = BTreeSet::from([0]);
        let (none, one) = (BTreeSet::new(), BTreeSet::from(["B-1"]));
        let unknown = "`B-1` (r) names no existing case or requirement: is it mistyped?";
        let expired = "`C-1` (r) expired on 2020-01-01: fix the server, or set a new date";
        let gone = "`B-1` (r) no longer fails: remove it";
        let none_told: [&str; 0] = [];
        for (partial, ran, known, stale, untried) in [
            (false, &none, &none, &[expired, unknown][..], &none_told[..]),
            (false, &none, &one, &[expired], &["`B-1` (r) was not tried by this run"]),
            (false, &one, &one, &[gone, expired], &none_told),
            (true, &none, &one, &[expired], &none_told),
            (true, &one, &one, &[gone, expired], &none_told),
        ] {
            baseline.partial = partial;
            let told = baseline.stale(&used, ran, known);
            assert_eq!(
                (&told.0[..], &told.1[..]),
                (
                    &stale.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..],
                    &untried.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..]
                )
            );
        }
    }

    #[test]
    fn a_case_that_fails_in_some_runs_only_is_not_stale() {
        let text =
            "known:\n  - { case: f/a, match: A-1, reason: r }\n  - { case: f/b, match: A-1, reason: r }\n";
        let baseline = read(text, "2030-01-01").expect("valid");
        let ran = BTreeSet::from(["f/a", "f/b"]);
        let (stale, hints) = baseline.stale(&BTreeSet::from([0]), &ran, &ran);
        assert!(
            stale.is_empty() && hints.len() == 1 && hints[0].contains("`f/b` `A-1`"),
            "{stale:?} {hints:?}"
        );
        assert_eq!(baseline.stale(&BTreeSet::new(), &ran, &ran).0.len(), 2, "nothing fails any more");
    }

    #[test]
    fn what_fails_sometimes_is_not_stale_until_it_expires() {
        let entry =
            "known:\n  - { case: f/a, match: A-1, sometimes: true, expires: 2030-06-01, reason: r }\n";
        let ran = BTreeSet::from(["f/a"]);
        for (today, stale, hints) in [("2030-01-01", 0, 1), ("2031-01-01", 1, 0)] {
            let baseline = read(entry, today).expect("valid");
            let told = baseline.stale(&BTreeSet::new(), &ran, &ran);
            assert_eq!((told.0.len(), told.1.len()), (stale, hints), "{today}: {told:?}");
        }
    }

    #[test]
    fn mistakes_have_places() {
        let text = "known:\n  - match: 'A-['\n    reason: x\n    expires: tomorrow\n  - match: A\n    reason: ' '\n    messag: m\n";
        let shown = read(text, "2030-01-01").expect_err("wrong").to_string();
        assert!(shown.contains("did you mean `message`?"), "{shown}");
        let shown = read(&text.replace("    messag: m\n", ""), "2030-01-01").expect_err("wrong").to_string();
        for part in [
            "`A-[` is not a glob",
            "b.yaml:2:12",
            "`tomorrow` is not a date",
            "b.yaml:4:14",
            "needs a reason",
            "b.yaml:6:13",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }
}
