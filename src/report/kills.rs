//! What self-tests have found, as Markdown for a protocol's page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::protocol::{Level, Protocol};
use crate::selftest::report::{Exploration, Kills, RequirementKills, Styles, SuiteReport};

/// The tables of one suite: its parts, its requirements, and what was explored.
pub fn tables(suite: &SuiteReport, protocol: &Protocol) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "| part | tried | killed | by another | warned of only | harmless | not met |");
    let _ = writeln!(text, "|---|---:|---:|---:|---:|---:|---:|");
    for (part, kills) in &suite.defects {
        let Kills { mutants, killed, by_another, warned, harmless, not_met, .. } = kills;
        let rate = percent(*killed, *mutants);
        let part = format!("{part}{}", drawn(kills));
        let _ = writeln!(
            text,
            "| {part} | {mutants} | {killed} ({rate}) | {by_another} | {warned} | {harmless} | {not_met} |"
        );
    }
    if let Some(styles) = &suite.styles {
        text += &of_styles(styles);
    }
    text += &of_requirements(&suite.requirements(), protocol);
    if let Some(exploration) = &suite.exploration {
        text += &explored(exploration);
    }
    text
}

fn drawn(kills: &Kills) -> String {
    let seed = kills.drawn.seed;
    kills.drawn.sample.map(|sample| format!(", {sample} drawn by seed {seed}")).unwrap_or_default()
}

/// A rate that is not rounded up to all of them.
fn percent(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "\u{2013}".to_owned();
    }
    let thousandths = part * 1000 / whole;
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

fn of_styles(styles: &Styles) -> String {
    let Styles { alone, combinations, failures, warnings, .. } = styles;
    format!(
        "\n{} legal styles alone and {combinations} combinations (seed {}): {failures} failures, {warnings} warnings.\n",
        alone.len(),
        styles.drawn.seed
    )
}

fn of_requirements(all: &BTreeMap<&str, RequirementKills>, protocol: &Protocol) -> String {
    let mut text = String::new();
    // What only the wire has mutants for has no rate.
    let with_faults = all.iter().filter(|(_, kills)| kills.mutants > 0);
    let (whole, gaps): (Vec<_>, Vec<_>) =
        with_faults.partition(|(_, kills)| kills.killed == kills.mutants && kills.by_another == 0);
    let _ = writeln!(
        text,
        "\nOf {} requirements that faults violate, {} find each of their faults themselves. The others:\n",
        whole.len() + gaps.len(),
        whole.len()
    );
    if gaps.is_empty() {
        return text.replace(" The others:\n", "");
    }
    let _ = writeln!(
        text,
        "| requirement | level | faults | killed | by itself | by another | mutants of the wire that it finds |"
    );
    let _ = writeln!(text, "|---|---|---:|---:|---:|---:|---:|");
    for (id, kills) in gaps {
        let level = match protocol.requirements.get(id).map(|requirement| requirement.level) {
            Some(Level::Must) => "MUST",
            Some(Level::Should) => "SHOULD",
            Some(Level::May) => "MAY",
            None => "",
        };
        let RequirementKills { mutants, killed, by_itself, by_another, found, kinds: _ } = kills;
        let _ = writeln!(
            text,
            "| {id} | {level} | {mutants} | {killed} | {by_itself} | {by_another} | {found} |"
        );
    }
    text
}

fn explored(exploration: &Exploration) -> String {
    let Exploration { seed, walks, moves, findings, states, counts, never } = exploration;
    let made: usize = counts.values().flatten().filter(|count| **count > 0).count();
    let mut text = format!(
        "\nExplored by {walks} walks of {moves} moves (seed {seed}): {findings} findings; {made} of {} legal pairs of state and move were made.\n\n",
        made + never.len()
    );
    let _ = writeln!(text, "| move | {} |", states.join(" | "));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(states.len()));
    for (act, counts) in counts {
        let cells: Vec<String> = counts.iter().map(u64::to_string).collect();
        let _ = writeln!(text, "| {} | {} |", act.replace('|', "\\|"), cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    #[test]
    fn a_page_shows_what_is_not_killed_and_the_rates_of_all() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
        let mut ids = protocol.requirements.0.keys();
        let (killed, survived) = (ids.next().expect("an id"), ids.next().expect("another"));
        let mut kills = Kills::new(Some(9), 3);
        (kills.mutants, kills.killed) = (1000, 999);
        let of = |mutants, killed, by_itself| RequirementKills {
            mutants,
            killed,
            by_itself,
            ..Default::default()
        };
        kills.requirements.insert(killed.clone(), of(2, 2, 2));
        kills.requirements.insert(survived.clone(), of(2, 1, 1));
        let exploration = Exploration {
            states: vec!["rest".to_owned()],
            counts: BTreeMap::from([("open".to_owned(), vec![4])]),
            never: vec!["rest: leave".to_owned()],
            ..Exploration::default()
        };
        let suite = SuiteReport {
            defects: BTreeMap::from([("wire".to_owned(), kills)]),
            styles: Some(Styles { failures: 1, ..Styles::default() }),
            exploration: Some(exploration),
        };
        let shown = tables(&suite, &protocol);
        assert!(shown.contains("| wire, 9 drawn by seed 3 | 1000 | 999 (99.9 %) |"), "{shown}");
        assert!(
            shown.contains(&format!("| {survived} | ")) && !shown.contains(&format!("| {killed} | ")),
            "{shown}"
        );
        assert!(shown.contains("1 failures, 0 warnings"), "{shown}");
        assert!(shown.contains("1 of 2 legal pairs") && shown.contains("| open | 4 |"), "{shown}");
    }
}
