//! What outlives the process: threads, counters, sessions with their history, and the log of every stream.
//!
//! A journal: each line is one transaction, a JSON array of changes, written before it is carried out in memory. A line that has been
//! written is there when the server is started again; a line that was cut does not count. The file has no name, so that it goes with the
//! process, however that ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rpc::{INTERNAL, REJECTED, Refusal, invalid, refuse};
use crate::shortage;

/// Values that a stream keeps for a resume; an older `lastSeq` has expired.
pub(super) const WINDOW: u64 = 16;
/// The journal is written anew when it has grown to this many bytes and to twice what it was then.
const COMPACT_FROM: u64 = 16 << 20;

/// What is stored, by way of the journal.
pub(super) struct Store {
    tables: Tables,
    journal: Journal,
    /// What a defect keeps from the disk, and whether it does so now.
    held: Vec<Change>,
    holds_back: bool,
}

#[derive(Default)]
struct Tables {
    /// The texts of each thread; the first is `m1`.
    messages: BTreeMap<String, Vec<String>>,
    counters: BTreeMap<String, i64>,
    sessions: BTreeSet<String>,
    /// Entries by session, as JSON text.
    history: BTreeMap<String, Vec<String>>,
    streams: BTreeMap<String, Stream>,
}

/// The log of one stream.
struct Stream {
    seq: u64,
    journal: String,
    /// The newest values by seq, as JSON text.
    values: BTreeMap<u64, String>,
}

/// One change. Values are kept as JSON text, for they nest as deeply as a reader takes.
#[derive(Clone, Serialize, Deserialize)]
enum Change {
    Append { thread: String, text: String },
    SetCounter { name: String, value: i64 },
    AddSession { id: String },
    RemoveSession { id: String },
    AddHistory { session: String, entry: String },
    Log { key: String, seq: u64, journal: String, value: String },
}

/// The file of a journal, which servers that follow one another share.
#[derive(Clone)]
pub(super) struct Disk(Arc<Mutex<File>>);

impl Disk {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(tempfile::tempfile()?))))
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Journal {
    disk: Disk,
    /// Its length, and its length after it was last written anew.
    length: u64,
    compacted: u64,
}

/// What a mutation may change, and so which streams are computed anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Topic {
    Thread(String),
    Counter(String),
    Session(String),
}

impl Store {
    /// Reads the journal.
    pub fn open(disk: &Disk) -> io::Result<Self> {
        let mut file = disk.file();
        file.seek(SeekFrom::Start(0))?;
        let (mut tables, mut length, mut line) = (Tables::default(), 0, Vec::new());
        let mut reader = BufReader::new(&mut *file);
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            // What is left without an end was being written when the process ended.
            let Some((b'\n', text)) = line.split_last() else { break };
            serde_json::from_slice::<Vec<Change>>(text)?.into_iter().for_each(|change| tables.apply(change));
            length += line.len() as u64;
        }
        file.set_len(length)?;
        let journal = Journal { disk: disk.clone(), length, compacted: length };
        Ok(Self { tables, journal, held: Vec::new(), holds_back: false })
    }

    // ---- reading ------------------------------------------------------------------------------------------------

    pub fn messages(&self, thread: &str) -> Value {
        let texts = self.tables.messages.get(thread).into_iter().flatten().zip(1..);
        texts.map(|(text, n)| json!({ "id": format!("m{n}"), "text": text })).collect()
    }

    pub fn count(&self, thread: &str) -> usize {
        self.tables.messages.get(thread).map_or(0, Vec::len)
    }

    pub fn counter(&self, name: &str) -> i64 {
        self.tables.counters.get(name).copied().unwrap_or(0)
    }

    pub fn has_session(&self, id: &str) -> bool {
        self.tables.sessions.contains(id)
    }

    /// How many prompts a session has had.
    pub fn prompts(&self, session: &str) -> usize {
        self.entries_of(session, "user")
    }

    /// Whether something that the agent said is in the history of a session.
    pub fn has_spoken(&self, session: &str) -> bool {
        self.entries_of(session, "agent") > 0
    }

    fn entries_of(&self, session: &str, role: &str) -> usize {
        let entries = self.tables.history.get(session).into_iter().flatten();
        entries.filter(|entry| parse(entry)["role"] == role).count()
    }

    pub fn history(&self, session: &str) -> Value {
        self.tables.history.get(session).into_iter().flatten().map(|entry| parse(entry)).collect()
    }

    // ---- sessions -----------------------------------------------------------------------------------------------

    pub fn add_session(&mut self, id: &str) -> io::Result<()> {
        self.commit(vec![Change::AddSession { id: id.to_owned() }])
    }

    pub fn remove_session(&mut self, id: &str) -> io::Result<()> {
        self.commit(vec![Change::RemoveSession { id: id.to_owned() }])
    }

    pub fn add_history(&mut self, session: &str, entry: &Value) -> io::Result<()> {
        self.commit(vec![Change::AddHistory { session: session.to_owned(), entry: entry.to_string() }])
    }

    // ---- streams ------------------------------------------------------------------------------------------------

    /// A stream's newest seq, its journal, and its newest value.
    pub fn stream(&self, key: &str) -> Option<(u64, String, Value)> {
        let stream = self.tables.streams.get(key)?;
        let value = stream.values.get(&stream.seq)?;
        Some((stream.seq, stream.journal.clone(), parse(value)))
    }

    /// Adds a value to a stream's log, and forgets those that have left the window.
    pub fn log(&mut self, key: &str, seq: u64, journal: &str, value: &Value) -> io::Result<()> {
        self.commit(vec![Change::Log {
            key: key.to_owned(),
            seq,
            journal: journal.to_owned(),
            value: value.to_string(),
        }])
    }

    /// The values of a stream after a seq; `None` where some of them have left the window.
    pub fn after(&self, key: &str, seq: u64) -> Option<Vec<(u64, Value)>> {
        let values = &self.tables.streams.get(key)?.values;
        let (oldest, _) = values.first_key_value()?;
        let kept = seq.checked_add(1).is_none_or(|next| next >= *oldest);
        kept.then(|| {
            let newer = values.iter().filter(|(each, _)| **each > seq);
            newer.map(|(seq, value)| (*seq, parse(value))).collect()
        })
    }

    // ---- mutations ----------------------------------------------------------------------------------------------

    /// Carries a mutation out, as one transaction: its value, and what it may have changed.
    pub fn mutate(
        &mut self,
        name: &str,
        args: &Value,
        keep_failed: bool,
    ) -> Result<(Value, Vec<Topic>), Refusal> {
        let text = |field: &str| {
            args.get(field)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| invalid(&["args", field]))
        };
        let number = |field: &str, otherwise: i64| match args.get(field) {
            None => Ok(otherwise),
            Some(value) => value.as_i64().ok_or_else(|| invalid(&["args", field])),
        };
        let append = |thread: &str, text: String| Change::Append { thread: thread.to_owned(), text };
        let (changes, value, topic) = match name {
            "appendMessage" => {
                let (thread, text) = (text("threadId")?, text("text")?);
                let id = format!("m{}", self.count(&thread) + 1);
                (vec![append(&thread, text)], json!({ "id": id }), Topic::Thread(thread))
            }
            "fillThread" => {
                let (thread, count) = (text("threadId")?, number("count", 1)?);
                let lines = (1..=count.clamp(0, 10_000)).map(|n| format!("line {n} of {count}"));
                let changes = lines.map(|line| append(&thread, line)).collect();
                (changes, json!({ "count": count }), Topic::Thread(thread))
            }
            "touchThread" | "breakThread" => (Vec::new(), Value::Null, Topic::Thread(text("threadId")?)),
            "increment" => {
                let (name, by) = (text("name")?, number("by", 1)?);
                let value = self.counter(&name).checked_add(by);
                let value = value.ok_or_else(|| refuse(INTERNAL, "a counter beyond its range"))?;
                (vec![Change::SetCounter { name: name.clone(), value }], json!(value), Topic::Counter(name))
            }
            "failHalfway" => {
                let half = append(&text("threadId")?, "half of it".to_owned());
                if keep_failed {
                    self.commit(vec![half])?;
                }
                return Err(refuse(REJECTED, "MutationFailed"));
            }
            _ => return Err(refuse(REJECTED, format!("no mutation {name:?}"))),
        };
        self.commit(changes)?;
        Ok((value, vec![topic]))
    }

    /// Sets a counter without looking at what it was.
    pub fn set_counter(&mut self, name: &str, value: i64) -> io::Result<()> {
        self.commit(vec![Change::SetCounter { name: name.to_owned(), value }])
    }

    /// Whether what follows is kept from the disk until this is said again, under a defect.
    pub fn hold_back(&mut self, does: bool) -> io::Result<()> {
        self.holds_back = does;
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Ok(()) } else { self.journal.append(&held) }
    }

    /// Whether something is kept from the disk.
    pub fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Writes a transaction down, then carries it out.
    fn commit(&mut self, changes: Vec<Change>) -> io::Result<()> {
        shortage::note_result(self.written(changes))
    }

    fn written(&mut self, changes: Vec<Change>) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        if self.holds_back {
            self.held.extend(changes.iter().cloned());
        } else {
            self.journal.append(&changes)?;
        }
        changes.into_iter().for_each(|change| self.tables.apply(change));
        if self.journal.is_over_limit() {
            self.journal.rewrite(&self.tables)?;
        }
        Ok(())
    }
}

impl Tables {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Append { thread, text } => self.messages.entry(thread).or_default().push(text),
            Change::SetCounter { name, value } => drop(self.counters.insert(name, value)),
            Change::AddSession { id } => drop(self.sessions.insert(id)),
            Change::RemoveSession { id } => drop(self.sessions.remove(&id)),
            Change::AddHistory { session, entry } => self.history.entry(session).or_default().push(entry),
            Change::Log { key, seq, journal, value } => {
                let values = self.streams.remove(&key).map(|stream| stream.values).unwrap_or_default();
                let mut stream = Stream { seq, journal, values };
                stream.values.insert(seq, value);
                stream.values = stream.values.split_off(&(seq + 1).saturating_sub(WINDOW));
                self.streams.insert(key, stream);
            }
        }
    }

    /// What makes these tables of empty ones.
    fn changes(&self) -> impl Iterator<Item = Change> {
        let texts = |table: &BTreeMap<String, Vec<String>>| -> Vec<(String, String)> {
            let rows = table.iter().flat_map(|(key, texts)| texts.iter().map(move |text| (key, text)));
            rows.map(|(key, text)| (key.clone(), text.clone())).collect()
        };
        let messages =
            texts(&self.messages).into_iter().map(|(thread, text)| Change::Append { thread, text });
        let history =
            texts(&self.history).into_iter().map(|(session, entry)| Change::AddHistory { session, entry });
        let counters = self.counters.iter();
        let counters = counters.map(|(name, value)| Change::SetCounter { name: name.clone(), value: *value });
        let sessions = self.sessions.iter().map(|id| Change::AddSession { id: id.clone() });
        let streams = self.streams.iter().flat_map(|(key, stream)| {
            stream.values.iter().map(|(seq, value)| Change::Log {
                key: key.clone(),
                seq: *seq,
                journal: stream.journal.clone(),
                value: value.clone(),
            })
        });
        messages.chain(history).chain(counters).chain(sessions).chain(streams)
    }
}

impl Journal {
    /// Adds a line, whole or not at all.
    fn append(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut line = serde_json::to_vec(changes)?;
        line.push(b'\n');
        let mut file = self.disk.file();
        let before = file.seek(SeekFrom::End(0))?;
        if let Err(error) = file.write_all(&line) {
            file.set_len(before)?;
            return Err(error);
        }
        self.length = before + line.len() as u64;
        Ok(())
    }

    fn is_over_limit(&self) -> bool {
        self.length >= COMPACT_FROM && self.length / 2 >= self.compacted
    }

    /// Puts a journal of what there is now in the place of the grown one.
    fn rewrite(&mut self, tables: &Tables) -> io::Result<()> {
        let mut fresh = BufWriter::new(tempfile::tempfile()?);
        for change in tables.changes() {
            serde_json::to_writer(&mut fresh, &[change])?;
            fresh.write_all(b"\n")?;
        }
        let mut fresh = fresh.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.length = fresh.stream_position()?;
        self.compacted = self.length;
        *self.disk.file() = fresh;
        Ok(())
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(store: &mut Store, text: &str) -> Value {
        store.mutate("appendMessage", &json!({ "threadId": "t", "text": text }), false).expect("appended").0
    }

    #[test]
    fn what_was_committed_is_there_after_opening_again() {
        let disk = Disk::new().expect("a file");
        let mut store = Store::open(&disk).expect("a journal");
        assert_eq!(append(&mut store, "x"), json!({ "id": "m1" }));
        assert!(store.mutate("failHalfway", &json!({ "threadId": "t" }), false).is_err());
        store.log("k", 1, "j", &json!([1])).expect("logged");
        drop(store);
        let store = Store::open(&disk).expect("a journal");
        assert_eq!(store.messages("t"), json!([{ "id": "m1", "text": "x" }]));
        assert_eq!(store.stream("k"), Some((1, "j".to_owned(), json!([1]))));
    }

    #[test]
    fn a_line_that_was_cut_does_not_count() {
        let disk = Disk::new().expect("a file");
        let mut store = Store::open(&disk).expect("a journal");
        append(&mut store, "x");
        disk.file().write_all(b"[{\"Append\":{\"thread\":\"t\",\"te").expect("written");
        let mut store = Store::open(&disk).expect("a journal");
        assert_eq!(append(&mut store, "y"), json!({ "id": "m2" }));
        assert_eq!(Store::open(&disk).expect("a journal").count("t"), 2);
    }

    #[test]
    fn a_journal_that_is_written_anew_says_the_same() {
        let disk = Disk::new().expect("a file");
        let mut store = Store::open(&disk).expect("a journal");
        append(&mut store, "x");
        store.set_counter("c", 3).expect("set");
        store.add_session("s").expect("added");
        store.add_history("s", &json!({ "n": 1 })).expect("added");
        for seq in 1..=WINDOW + 2 {
            store.log("k", seq, "j", &json!(seq)).expect("logged");
        }
        store.journal.rewrite(&store.tables).expect("written anew");
        assert_eq!(append(&mut store, "y"), json!({ "id": "m2" }));
        let store = Store::open(&disk).expect("a journal");
        assert_eq!((store.count("t"), store.counter("c"), store.has_session("s")), (2, 3, true));
        assert_eq!(store.history("s"), json!([{ "n": 1 }]));
        assert_eq!(store.stream("k"), Some((WINDOW + 2, "j".to_owned(), json!(WINDOW + 2))));
        assert_eq!(store.after("k", 2).map(|values| values.len() as u64), Some(WINDOW));
    }

    #[test]
    fn the_log_is_a_window() {
        let disk = Disk::new().expect("a file");
        let mut store = Store::open(&disk).expect("a journal");
        for seq in 1..=WINDOW + 2 {
            store.log("k", seq, "j", &json!(seq)).expect("logged");
        }
        assert_eq!(store.after("k", 1), None);
        assert_eq!(store.after("k", 2).map(|values| values.len() as u64), Some(WINDOW));
        assert_eq!(store.after("k", WINDOW + 2), Some(Vec::new()));
        assert_eq!(store.after("other", 0), None);
    }
}
