//! A judged recording on a terminal: the violations of a requirement once, with their count.

use std::collections::HashMap;
use std::io::Write;

use anstyle::Style;

use super::brief::{Shown, line};
use super::console::{CYAN, DIM, RED, YELLOW, painted, wrapped};
use super::escape::terminal;
use crate::check::Violation;
use crate::protocol::Protocol;
use crate::results::event::{Failure, Verdict};
use crate::text::{beginning, normalize};
use crate::trace::{Event, Payload};

/// Bytes that are kept of the frame that shows a violation.
const KEPT: usize = 1 << 14;
/// Frames that are named of a block, and other messages that are told.
const FRAMES: usize = 8;
const MESSAGES: usize = 3;
/// The same with `-v`.
const ALL: usize = 1_000;
/// Columns that a frame gets however narrow the terminal is.
const NARROWEST: usize = 40;

/// How to show it.
#[derive(Debug, Clone, Copy)]
pub struct BlockOptions {
    /// The most blocks that are shown.
    pub most: usize,
    /// Show each violation's message, and frames whole.
    pub verbose: bool,
    /// Columns of the terminal; `None` (a pipe): frames are whole.
    pub width: Option<usize>,
}

/// The violations of a recording, by the requirements that they break.
pub struct Blocks {
    options: BlockOptions,
    blocks: Vec<Block>,
    /// The number of a block, by its requirements and whether it fails.
    known: HashMap<(Vec<String>, bool), usize>,
    /// Violations in no block.
    beyond: u64,
}

/// The violations of the same requirements.
struct Block {
    fails: bool,
    first: Violation,
    place: String,
    text: Option<(String, usize)>,
    /// The same, and what else breaks these requirements.
    count: u64,
    frames: Frames,
    /// Messages that say something else, with their places.
    others: Vec<(String, String)>,
    /// What was said, without ids.
    said: Vec<String>,
}

/// Frames of a trace, by their numbers: where violations of a block were seen.
struct Frames {
    /// The frame of the first violation.
    first: Option<u64>,
    /// The frame that came last.
    last: Option<u64>,
    /// The first of the others.
    others: Vec<u64>,
    /// How many more there are.
    more: u64,
}

impl Frames {
    fn of(seen: Seen<'_>) -> Self {
        let first = seen.map(|(number, _)| number);
        Self { first, last: first, others: Vec::new(), more: 0 }
    }

    fn add(&mut self, seen: Seen<'_>) {
        let Some((number, _)) = seen.filter(|(number, _)| Some(*number) != self.last) else { return };
        self.last = Some(number);
        if Some(number) == self.first {
            return;
        }
        if self.others.len() < FRAMES {
            self.others.push(number);
        } else {
            self.more += 1;
        }
    }

    /// `, also in frames 3, 4 and 2 more`
    fn named(&self) -> String {
        let numbers: Vec<String> = self.others.iter().map(u64::to_string).collect();
        let word = if numbers.len() == 1 { "frame" } else { "frames" };
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        if numbers.is_empty() {
            String::new()
        } else {
            format!(", also in {word} {}{more}", numbers.join(", "))
        }
    }
}

/// Where a violation was seen: the number of its event, from 1, and the event.
pub type Seen<'e> = Option<(u64, &'e Event)>;

fn place(seen: Seen<'_>) -> String {
    let Some((number, event)) = seen else { return "at the end".to_owned() };
    let case = event.case.as_ref().map(|case| format!("case {case}, ")).unwrap_or_default();
    let ms = event.at.as_secs_f64() * 1e3;
    format!("frame {number} of the trace, {case}{ms:.1} ms, client {}", event.client)
}

impl Blocks {
    /// None yet.
    #[must_use]
    pub fn new(options: BlockOptions) -> Self {
        Self { options, blocks: Vec::new(), known: HashMap::new(), beyond: 0 }
    }

    /// Takes in a violation. `fails`: it is no mere warning.
    pub fn add(&mut self, protocol: &Protocol, violation: &Violation, fails: bool, seen: Seen<'_>) {
        let count = 1 + violation.more;
        let key = (violation.requirements.clone(), fails);
        if let Some(block) = self.known.get(&key).and_then(|at| self.blocks.get_mut(*at)) {
            let limit = if self.options.verbose { ALL } else { MESSAGES };
            return block.join(protocol, violation, seen, limit, self.options.verbose);
        }
        if self.blocks.len() >= self.options.most {
            self.beyond += count;
            return;
        }
        let text = match seen {
            Some((_, Event { payload: Payload::Text(text), .. })) => Some(kept(text)),
            _ => None,
        };
        self.known.insert(key, self.blocks.len());
        self.blocks.push(Block {
            fails,
            place: place(seen),
            text,
            count,
            frames: Frames::of(seen),
            others: Vec::new(),
            said: vec![normalize(&violation.message)],
            first: Violation { message: violation.description(protocol), ..violation.clone() },
        });
    }

    /// Shows the blocks, in the order in which the first of each was seen.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, out: &mut impl Write, protocol: &Protocol) -> std::io::Result<()> {
        for block in &self.blocks {
            self.block(out, protocol, block)?;
        }
        match self.beyond {
            0 => Ok(()),
            more => writeln!(out, "… and {more} more of other requirements"),
        }
    }

    fn block(&self, out: &mut impl Write, protocol: &Protocol, block: &Block) -> std::io::Result<()> {
        let Block { fails, first, place, text, count, frames, others, .. } = block;
        let width = self.options.width;
        let (style, word) = if *fails { (RED, "FAIL") } else { (YELLOW, "WARN") };
        let head = wrapped(width, &format!("{place}: {}", first.message), 5, 5);
        writeln!(out, "{style}{word}{style:#} {head}")?;
        if let Some((text, cut)) = text {
            writeln!(out, "     {}", self.frame(first, text, *cut))?;
        }
        if first.warns && protocol.requirements.fails(&first.requirements) {
            let reading = format!("{:?}", protocol.reading).to_lowercase();
            writeln!(out, "     no failure: the {reading} reading tolerates it")?;
        }
        for id in &first.requirements {
            let Some(known) = protocol.requirements.get(id) else { continue };
            let level = known.level.to_string();
            let said = format!("{} ({})", known.text, known.source);
            let said = wrapped(width, &said, 7 + id.len() + level.len(), 7);
            writeln!(out, "     {CYAN}{id}{CYAN:#} {level} {said}")?;
            if let Some(reading) = known.reading.as_deref().and_then(|reading| protocol.answer_taken(reading))
            {
                writeln!(out, "       {DIM}reading {}{DIM:#}", wrapped(width, &reading, 15, 9))?;
            }
        }
        for (message, place) in others {
            let told = wrapped(width, &format!("{place}: {message}"), 10, 7);
            writeln!(out, "     {DIM}also{DIM:#} {told}")?;
        }
        if *count > 1 {
            writeln!(out, "     {style}{count} times{style:#}{}", wrapped(width, &frames.named(), 12, 7))?;
        }
        Ok(())
    }

    /// The frame in one line, with what is wrong in it; or whole.
    fn frame(&self, violation: &Violation, text: &str, cut: usize) -> String {
        if self.options.verbose {
            let more = if cut > 0 { format!("… (+{cut} bytes)") } else { String::new() };
            return format!("{}{more}", terminal(text));
        }
        let failure = Failure::new(violation.check.clone(), Verdict::Failed, violation.message.clone())
            .with_values(violation.expected.clone(), violation.actual.clone());
        let room = self.options.width.map(|width| width.saturating_sub(5).max(NARROWEST));
        painted(&line(Shown { kind: None, text, cut }, room, &[&failure]), Style::new())
    }
}

impl Block {
    fn join(&mut self, protocol: &Protocol, violation: &Violation, seen: Seen<'_>, limit: usize, all: bool) {
        self.count += 1 + violation.more;
        self.frames.add(seen);
        let said = normalize(&violation.message);
        if self.others.len() < limit && (all || !self.said.contains(&said)) {
            self.others.push((violation.description(protocol), place(seen)));
            if !all {
                self.said.push(said);
            }
        }
    }
}

/// As much of a text as is kept, and how many bytes are not.
fn kept(text: &str) -> (String, usize) {
    let kept = beginning(text, KEPT);
    (kept.to_owned(), text.len() - kept.len())
}
