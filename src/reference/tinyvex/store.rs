//! What outlives the process: threads, counters, sessions with their history, and the log of every stream.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};

use super::rpc::{REJECTED, Refusal, invalid, refuse};

/// Values that a stream keeps for a resume; an older `lastSeq` has expired.
pub(super) const WINDOW: u64 = 16;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS messages (thread TEXT NOT NULL, n INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (thread, n));
    CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS history (session TEXT NOT NULL, n INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (session, n));
    CREATE TABLE IF NOT EXISTS streams (key TEXT PRIMARY KEY, seq INTEGER NOT NULL, journal TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS log (key TEXT NOT NULL, seq INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (key, seq));
";

/// The database.
pub(super) struct Store(Connection);

/// What a mutation may change, and so which streams are computed anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Topic {
    Thread(String),
    Counter(String),
    Session(String),
}

impl Store {
    /// Opens the database in a folder.
    pub fn open(folder: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(folder.join("tinyvex.sqlite"))?;
        // A commit survives the end of the process; only a power cut could take back the newest ones.
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self(connection))
    }

    // ---- reading ------------------------------------------------------------------------------------------------

    pub fn messages(&self, thread: &str) -> rusqlite::Result<Value> {
        let mut query = self.0.prepare_cached("SELECT n, text FROM messages WHERE thread = ? ORDER BY n")?;
        let rows = query.query_map([thread], |row| {
            let (n, text): (u64, String) = (row.get(0)?, row.get(1)?);
            Ok(json!({ "id": format!("m{n}"), "text": text }))
        })?;
        Ok(Value::Array(rows.collect::<Result<_, _>>()?))
    }

    pub fn count(&self, thread: &str) -> rusqlite::Result<u64> {
        self.0.query_row("SELECT count(*) FROM messages WHERE thread = ?", [thread], |row| row.get(0))
    }

    pub fn counter(&self, name: &str) -> rusqlite::Result<i64> {
        let query = "SELECT value FROM counters WHERE name = ?";
        Ok(self.0.query_row(query, [name], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    pub fn has_session(&self, id: &str) -> rusqlite::Result<bool> {
        let found = self.0.query_row("SELECT 1 FROM sessions WHERE id = ?", [id], |_| Ok(())).optional()?;
        Ok(found.is_some())
    }

    pub fn history(&self, session: &str) -> rusqlite::Result<Value> {
        let mut query = self.0.prepare_cached("SELECT entry FROM history WHERE session = ? ORDER BY n")?;
        let rows = query.query_map([session], |row| row.get(0))?;
        let entries =
            rows.map(|entry: rusqlite::Result<String>| Ok(serde_json::from_str(&entry?).unwrap_or_default()));
        Ok(Value::Array(entries.collect::<rusqlite::Result<_>>()?))
    }

    // ---- sessions -----------------------------------------------------------------------------------------------

    pub fn add_session(&self, id: &str) -> rusqlite::Result<()> {
        self.0.execute("INSERT OR IGNORE INTO sessions VALUES (?)", [id]).map(|_| ())
    }

    pub fn remove_session(&self, id: &str) -> rusqlite::Result<()> {
        self.0.execute("DELETE FROM sessions WHERE id = ?", [id]).map(|_| ())
    }

    pub fn add_history(&self, session: &str, entry: &Value) -> rusqlite::Result<()> {
        let statement =
            "INSERT INTO history SELECT ?1, coalesce(max(n), 0) + 1, ?2 FROM history WHERE session = ?1";
        self.0.prepare_cached(statement)?.execute(params![session, entry.to_string()]).map(|_| ())
    }

    // ---- streams ------------------------------------------------------------------------------------------------

    /// A stream's newest seq, its journal, and its newest value.
    pub fn stream(&self, key: &str) -> rusqlite::Result<Option<(u64, String, Value)>> {
        let query =
            "SELECT s.seq, s.journal, l.value FROM streams s JOIN log l ON l.key = s.key AND l.seq = s.seq
                     WHERE s.key = ?";
        let found = self.0.prepare_cached(query)?.query_row([key], |row| {
            let value: String = row.get(2)?;
            Ok((row.get(0)?, row.get(1)?, serde_json::from_str(&value).unwrap_or_default()))
        });
        found.optional()
    }

    /// Adds a value to a stream's log, and forgets those that have left the window.
    pub fn log(&mut self, key: &str, seq: u64, journal: &str, value: &Value) -> rusqlite::Result<()> {
        let change = self.0.transaction()?;
        change
            .prepare_cached("INSERT OR REPLACE INTO streams VALUES (?, ?, ?)")?
            .execute(params![key, seq, journal])?;
        change.prepare_cached("INSERT OR REPLACE INTO log VALUES (?, ?, ?)")?.execute(params![
            key,
            seq,
            value.to_string()
        ])?;
        let oldest = (seq + 1).saturating_sub(WINDOW);
        change.prepare_cached("DELETE FROM log WHERE key = ? AND seq < ?")?.execute(params![key, oldest])?;
        change.commit()
    }

    /// The values of a stream after a seq; `None` where some of them have left the window.
    pub fn after(&self, key: &str, seq: u64) -> rusqlite::Result<Option<Vec<(u64, Value)>>> {
        let oldest: Option<u64> =
            self.0.query_row("SELECT min(seq) FROM log WHERE key = ?", [key], |row| row.get(0))?;
        if oldest.is_none_or(|oldest| seq + 1 < oldest) {
            return Ok(None);
        }
        let mut query =
            self.0.prepare_cached("SELECT seq, value FROM log WHERE key = ? AND seq > ? ORDER BY seq")?;
        let rows = query.query_map(params![key, seq], |row| {
            let value: String = row.get(1)?;
            Ok((row.get(0)?, serde_json::from_str(&value).unwrap_or_default()))
        })?;
        rows.collect::<rusqlite::Result<_>>().map(Some)
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
        let change = self.0.transaction()?;
        let done = match name {
            "appendMessage" => {
                let (thread, text) = (text("threadId")?, text("text")?);
                let id = append(&change, &thread, &text)?;
                (json!({ "id": id }), vec![Topic::Thread(thread)])
            }
            "fillThread" => {
                let (thread, count) = (text("threadId")?, number("count", 1)?);
                for n in 1..=count.clamp(0, 10_000) {
                    append(&change, &thread, &format!("line {n} of {count}"))?;
                }
                (json!({ "count": count }), vec![Topic::Thread(thread)])
            }
            "touchThread" => (Value::Null, vec![Topic::Thread(text("threadId")?)]),
            "increment" => {
                let (name, by) = (text("name")?, number("by", 1)?);
                let value = increment(&change, &name, by)?;
                (json!(value), vec![Topic::Counter(name)])
            }
            "failHalfway" => {
                let thread = text("threadId")?;
                append(&change, &thread, "half of it")?;
                if keep_failed {
                    change.commit()?;
                }
                return Err(refuse(REJECTED, "MutationFailed"));
            }
            "breakThread" => (Value::Null, vec![Topic::Thread(text("threadId")?)]),
            _ => return Err(refuse(REJECTED, format!("no mutation {name:?}"))),
        };
        change.commit()?;
        Ok(done)
    }

    /// Sets a counter without looking at what it was.
    pub fn set_counter(&self, name: &str, value: i64) -> rusqlite::Result<()> {
        self.0.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", params![name, value]).map(|_| ())
    }
}

fn append(change: &Transaction<'_>, thread: &str, text: &str) -> rusqlite::Result<String> {
    let statement = "INSERT INTO messages SELECT ?1, coalesce(max(n), 0) + 1, ?2 FROM messages WHERE thread = ?1 RETURNING n";
    let n: u64 = change.prepare_cached(statement)?.query_row(params![thread, text], |row| row.get(0))?;
    Ok(format!("m{n}"))
}

fn increment(change: &Transaction<'_>, name: &str, by: i64) -> rusqlite::Result<i64> {
    let statement = "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + ?2
                     RETURNING value";
    change.prepare_cached(statement)?.query_row(params![name, by], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_committed_is_there_after_opening_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("a database");
        let args = json!({ "threadId": "t", "text": "x" });
        assert_eq!(store.mutate("appendMessage", &args, false).expect("appended").0, json!({ "id": "m1" }));
        assert!(store.mutate("failHalfway", &args, false).is_err());
        store.log("k", 1, "j", &json!([1])).expect("logged");
        drop(store);
        let store = Store::open(folder.path()).expect("a database");
        assert_eq!(store.messages("t").expect("messages"), json!([{ "id": "m1", "text": "x" }]));
        assert_eq!(store.stream("k").expect("a stream"), Some((1, "j".to_owned(), json!([1]))));
    }

    #[test]
    fn the_log_is_a_window() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("a database");
        for seq in 1..=WINDOW + 2 {
            store.log("k", seq, "j", &json!(seq)).expect("logged");
        }
        assert_eq!(store.after("k", 1).expect("read"), None);
        assert_eq!(store.after("k", 2).expect("read").map(|values| values.len() as u64), Some(WINDOW));
        assert_eq!(store.after("k", WINDOW + 2).expect("read"), Some(Vec::new()));
        assert_eq!(store.after("other", 0).expect("read"), None);
    }
}
