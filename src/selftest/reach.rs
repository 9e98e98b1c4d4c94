//! Which cases a mutant of the wire can reach: those in which its message comes from a server as it is. The others need not run.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::results::event::CaseReport;
use crate::results::evidence::Way;
use crate::scenario::LoadedCase;
use crate::wire::relay::{Mutation, Occurrence, Operator};

/// What a case receives from a server as it is.
enum Received {
    Messages(Vec<Value>),
    /// The report leaves some of it out.
    Unknown,
}

/// What each case receives, by the case's id.
#[derive(Default)]
pub(super) struct Reach(BTreeMap<String, Received>);

impl Reach {
    /// Adds the report of a case, which has kept its frames.
    pub fn add(&mut self, report: &CaseReport) {
        let frames = report.wire.iter().filter(|frame| frame.way == Way::ToClient);
        let received = if report.wire_omitted > 0 || frames.clone().any(|frame| frame.cut > 0) {
            Received::Unknown
        } else {
            Received::Messages(frames.filter_map(|frame| serde_json::from_str(&frame.text).ok()).collect())
        };
        self.0.insert(report.case.clone(), received);
    }

    /// The cases that a mutation can reach. What it sends to other sessions is seen by any case, if one can send it.
    pub fn cases(&self, all: &[LoadedCase], mutation: &Mutation) -> Vec<LoadedCase> {
        let reaches = |case: &LoadedCase| match self.0.get(&case.id) {
            Some(Received::Messages(messages)) => {
                let least = if mutation.occurrence == Occurrence::Second { 2 } else { 1 };
                messages.iter().filter(|body| mutation.fits(body)).nth(least - 1).is_some()
            }
            Some(Received::Unknown) | None => true,
        };
        if mutation.operator == Operator::ToOtherSession && all.iter().any(reaches) {
            return all.to_vec();
        }
        all.iter().filter(|case| reaches(case)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoadOptions, Protocol};
    use crate::results::evidence::FrameRecord;

    #[test]
    fn a_mutant_meets_the_cases_in_which_its_message_comes() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
        let all = crate::scenario::embedded(&protocol).expect("its cases")[..4].to_vec();
        let says = protocol.messages.iter().find(|message| protocol.says(&message.name, message.dir));
        let message = says.expect("a message with a type").name.clone();
        let mut body = serde_json::json!({});
        protocol.extension.discriminator.put(&mut body, Value::String(message.clone()));
        let frame = |way, text: &str| FrameRecord {
            index: 1,
            ms: 0.0,
            client: "main".to_owned(),
            way,
            kind: None,
            text: text.to_owned(),
            ambient: false,
            automatic: false,
            cut: 0,
            states: Vec::new(),
        };
        let received = |text: &str| frame(Way::ToClient, text);
        let text = body.to_string();
        let wires = [
            vec![received("{}"), frame(Way::ToServer, &text)],
            vec![received(&text)],
            vec![received(&text), received(&text)],
            vec![FrameRecord { cut: 9, ..received("{") }],
        ];
        let mut reach = Reach::default();
        for (case, wire) in all.iter().zip(wires) {
            reach.add(&CaseReport { case: case.id.clone(), wire, ..CaseReport::default() });
        }
        let ids = |operator, occurrence| -> Vec<usize> {
            let mutation = Mutation::new(&protocol, Some(message.clone()), operator).at(occurrence);
            let cases = reach.cases(&all, &mutation);
            (0..all.len()).filter(|index| cases.iter().any(|case| case.id == all[*index].id)).collect()
        };
        assert_eq!(ids(Operator::Drop, Occurrence::First), [1, 2, 3], "one has it, one may");
        assert_eq!(ids(Operator::Drop, Occurrence::Second), [2, 3]);
        assert_eq!(ids(Operator::ToOtherSession, Occurrence::Every), [0, 1, 2, 3], "any of them may see it");
    }
}
