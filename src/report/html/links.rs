//! Where things stand on the page: `#case=PROTOCOL/FAMILY/NAME` and `#req=ID`, the same from run to run.

use std::collections::{HashMap, HashSet};

use crate::report::runs::Run;
use crate::results::event::CaseReport;

/// The place of each case and requirement.
pub(super) struct Links {
    cases: HashMap<*const CaseReport, String>,
    /// The first case of a name, by run and name.
    named: HashMap<(usize, String), String>,
    /// The first run that tells of a requirement, by its id.
    requirements: HashMap<String, usize>,
}

impl Links {
    pub fn new(runs: &[Run<'_>]) -> Self {
        let (mut taken, mut numbers) = (HashSet::new(), HashMap::new());
        let mut links = Self { cases: HashMap::new(), named: HashMap::new(), requirements: HashMap::new() };
        for (index, run) in runs.iter().enumerate() {
            for case in &run.cases {
                let plain = format!("case={}/{}", plain(&run.started.protocol), plain(&case.case));
                // With --repeat, a case comes again.
                let number = numbers.entry(plain.clone()).or_insert(1_u64);
                let mut id = plain.clone();
                while !taken.insert(id.clone()) {
                    *number += 1;
                    id = format!("{plain}~{number}");
                }
                links.named.entry((index, case.case.clone())).or_insert_with(|| id.clone());
                links.cases.insert(std::ptr::from_ref(*case), id);
            }
            let judged = run.summary.iter().flat_map(|summary| summary.requirements.keys());
            judged.for_each(|id| {
                links.requirements.entry(requirement_id(id)).or_insert(index);
            });
        }
        links
    }

    /// The id of a case's element.
    pub fn case(&self, case: &CaseReport) -> &str {
        self.cases.get(&std::ptr::from_ref(case)).map_or("", String::as_str)
    }

    /// The link to the case of a name, if the run has one.
    pub fn to_named(&self, run: usize, name: &str) -> Option<String> {
        self.named.get(&(run, name.to_owned())).map(|id| format!("#{id}"))
    }

    /// The id of a requirement's element in a run: where several runs tell of it, the first has it.
    pub fn requirement(&self, run: usize, id: &str) -> Option<String> {
        let id = requirement_id(id);
        (self.requirements.get(&id) == Some(&run)).then_some(id)
    }

    /// The link to a requirement, if the page tells of it.
    pub fn to_requirement(&self, id: &str) -> Option<String> {
        let id = requirement_id(id);
        self.requirements.contains_key(&id).then(|| format!("#{id}"))
    }
}

/// What leads to a requirement.
fn requirement_id(id: &str) -> String {
    format!("req={}", plain(id))
}

/// What may stand in an address as it is.
fn plain(text: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    text.chars().take(200).map(|c| if kept(c) { c } else { '-' }).collect()
}
