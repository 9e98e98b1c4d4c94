//! Two recordings compared: what is missing, what is new, what has changed.
//!
//! They differ where a message is in one of them only, comes at another place in what its client hears and says, or has another
//! value at a place where values do not differ from run to run. Times, and where a text is cut into pieces, are no difference.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::align::{Pair, pairs};
use super::entry::{Clients, Entry, Recording, Stream};
use super::ids::{Ids, Scope};
use super::places::Places;

/// An answer takes longer if it takes so many times as long, and so much more: a busy machine is no news.
const SLOWER: u32 = 2;
const MORE: Duration = Duration::from_millis(250);

/// What differs.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Case by case, in the order of the first recording; what only the second has comes last.
    pub cases: Vec<CaseComparison>,
    /// Requirements that only the first recording breaks, and only the second.
    pub broken: (Vec<String>, Vec<String>),
    /// Seconds that the recordings last.
    pub seconds: (f64, f64),
    /// Ids and counters that differ, and stand for each other.
    pub matched: usize,
    /// Frames of both that may come at any time, and are not compared.
    pub ambient: u64,
}

/// A recorded case.
#[derive(Debug)]
pub struct CaseComparison {
    /// None: a plain recording.
    pub case: Option<Arc<str>>,
    /// Client by client.
    pub clients: Vec<ClientComparison>,
    /// What takes longer.
    pub slower: Vec<Slower>,
}

/// What a client said and heard.
#[derive(Debug)]
pub struct ClientComparison {
    /// Its name.
    pub client: Arc<str>,
    /// In order.
    pub rows: Vec<Row>,
}

/// Something of one recording, of the other, or of both.
#[derive(Debug)]
pub struct Row {
    /// In the first.
    pub before: Option<Arc<Entry>>,
    /// In the second.
    pub after: Option<Arc<Entry>>,
    /// What differs.
    pub difference: Option<Difference>,
}

/// In which way a row differs.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// Only the first recording has it.
    Gone,
    /// Only the second has it.
    New,
    /// The other recording has it at another place: so many milliseconds after the start.
    Moved(Duration),
    /// It has other values: what the second recording has, in the ids of the first.
    Changed(Value),
}

/// Something that took longer.
#[derive(Debug)]
pub struct Slower {
    /// Whom it kept waiting.
    pub client: Arc<str>,
    /// What came late.
    pub kind: String,
    /// Since what came before it, in the first recording and in the second.
    pub took: (Duration, Duration),
}

/// How many rows there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// In both, and the same.
    pub same: usize,
    /// In the first only.
    pub gone: usize,
    /// In the second only.
    pub new: usize,
    /// At another place.
    pub moved: usize,
    /// With other values.
    pub changed: usize,
}

impl Counts {
    /// Whether anything differs.
    pub fn differ(&self) -> bool {
        self.gone + self.new + self.moved + self.changed > 0
    }

    fn add(&mut self, row: &Row) {
        match row.difference {
            None => self.same += 1,
            Some(Difference::Gone) => self.gone += 1,
            Some(Difference::New) => self.new += 1,
            // It is told at both of its places.
            Some(Difference::Moved(_)) => self.moved += usize::from(row.before.is_some()),
            Some(Difference::Changed(_)) => self.changed += 1,
        }
    }
}

impl CaseComparison {
    /// How much differs.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.clients.iter().flat_map(|client| &client.rows).for_each(|row| counts.add(row));
        counts
    }
}

impl Comparison {
    /// How much differs.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        let clients = self.cases.iter().flat_map(|case| &case.clients);
        clients.flat_map(|client| &client.rows).for_each(|row| counts.add(row));
        counts
    }

    /// Whether the recordings differ in more than what differs from run to run.
    pub fn differs(&self) -> bool {
        self.counts().differ()
    }
}

/// Compares two recordings of a protocol.
#[must_use]
pub fn compare(before: &Recording, after: &Recording, places: &Places) -> Comparison {
    let only = |one: &Recording, other: &Recording| {
        one.broken.keys().filter(|id| !other.broken.contains_key(*id)).cloned().collect()
    };
    let mut found = Comparison {
        broken: (only(before, after), only(after, before)),
        seconds: (before.last.as_secs_f64(), after.last.as_secs_f64()),
        ambient: before.ambient + after.ambient,
        ..Comparison::default()
    };
    let nobody = Vec::new();
    let of = |recording: &'_ Recording, case: &Option<Arc<str>>| {
        recording.cases.iter().position(|(known, _)| known == case)
    };
    for (case, clients) in &before.cases {
        let others = of(after, case).map_or(&nobody, |at| &after.cases[at].1);
        found.case(case.clone(), clients, others, places);
    }
    for (case, clients) in after.cases.iter().filter(|(case, _)| of(before, case).is_none()) {
        found.case(case.clone(), &nobody, clients, places);
    }
    found
}

impl Comparison {
    fn case(&mut self, case: Option<Arc<str>>, before: &Clients, after: &Clients, places: &Places) {
        let mut ids = Ids::default();
        let mut clients = Vec::new();
        for (client, one, other) in together(before, after) {
            let rows = pairs(one, other).into_iter().map(|pair| Row::new(pair, one, other));
            clients.push(ClientComparison { client, rows: rows.collect() });
        }
        // An id stands for what it stood for where it was first seen.
        let mut order: Vec<(Duration, usize, usize)> = Vec::new();
        for (client, compared) in clients.iter().enumerate() {
            let both = compared.rows.iter().enumerate().filter(|(_, row)| row.after.is_some());
            order.extend(both.filter_map(|(at, row)| Some((row.before.as_ref()?.at, client, at))));
        }
        order.sort();
        // Twice: what stands for what may become known later than it is seen first.
        for _ in 0..2 {
            for (_, client, at) in &order {
                clients[*client].rows[*at].settle(&mut ids, places, *client);
            }
        }
        for (number, client) in clients.iter_mut().enumerate() {
            find_moved(&mut client.rows, &mut ids, places, number);
        }
        let slower = clients.iter().flat_map(slower).collect();
        self.matched += ids.matched;
        self.cases.push(CaseComparison { case, clients, slower });
    }
}

/// The clients of both: those of the same name, and of the others the first with the first.
fn together<'c>(before: &'c Clients, after: &'c Clients) -> Vec<(Arc<str>, &'c Stream, &'c Stream)> {
    static NOTHING: Stream = Vec::new();
    let has = |clients: &Clients, name: &Arc<str>| clients.iter().any(|(known, _)| known == name);
    let mut others = after.iter().filter(|(name, _)| !has(before, name));
    let mut found = Vec::new();
    for (name, stream) in before {
        let same = after.iter().find(|(known, _)| known == name).or_else(|| others.next());
        found.push((Arc::clone(name), stream, same.map_or(&NOTHING, |(_, other)| other)));
    }
    found.extend(others.map(|(name, stream)| (Arc::clone(name), &NOTHING, stream)));
    found
}

impl Row {
    fn new((before, after): Pair, one: &Stream, other: &Stream) -> Self {
        let (before, after) = (before.map(|at| Arc::clone(&one[at])), after.map(|at| Arc::clone(&other[at])));
        let difference = match (&before, &after) {
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(Difference::Gone),
            (None, _) => Some(Difference::New),
        };
        Self { before, after, difference }
    }

    /// Decides whether a pair is the same.
    fn settle(&mut self, ids: &mut Ids, places: &Places, client: usize) {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return };
        let translated = translated(before, after, ids, places, client);
        self.difference = (translated != before.body).then_some(Difference::Changed(translated));
    }
}

fn translated(before: &Entry, after: &Entry, ids: &mut Ids, places: &Places, client: usize) -> Value {
    // A client has few connections.
    let scope = Scope { places, connection: client << 32 | before.connection };
    ids.translate(&before.body, &after.body, scope)
}

/// What is gone at one place and new at another has moved.
fn find_moved(rows: &mut [Row], ids: &mut Ids, places: &Places, client: usize) {
    let gone: Vec<usize> =
        (0..rows.len()).filter(|at| rows[*at].difference == Some(Difference::Gone)).collect();
    for from in gone {
        let Some(before) = rows[from].before.clone() else { continue };
        let same = |row: &Row| {
            row.difference == Some(Difference::New)
                && row.after.as_ref().is_some_and(|after| {
                    (after.way, &after.kind, &after.skeleton) == (before.way, &before.kind, &before.skeleton)
                })
        };
        let Some(to) = rows.iter().position(same) else { continue };
        let Some(after) = rows[to].after.clone() else { continue };
        if translated(&before, &after, ids, places, client) == before.body {
            rows[from].difference = Some(Difference::Moved(after.at));
            rows[to].difference = Some(Difference::Moved(before.at));
        }
    }
}

/// What kept a client waiting for longer.
fn slower(client: &ClientComparison) -> Vec<Slower> {
    let mut last: Option<(Duration, Duration)> = None;
    let mut found = Vec::new();
    for row in &client.rows {
        let (Some(before), Some(after)) = (&row.before, &row.after) else {
            last = None;
            continue;
        };
        if let Some((one, other)) = last.filter(|_| before.way == crate::results::event::Way::ToClient) {
            let took = (before.at.saturating_sub(one), after.at.saturating_sub(other));
            if took.1 > took.0 * SLOWER && took.1 > took.0 + MORE {
                found.push(Slower { client: Arc::clone(&client.client), kind: before.kind.clone(), took });
            }
        }
        last = Some((before.at, after.at));
    }
    found
}
