//! What can be wrong with the bytes of one message.

/// A place in the text of a frame. Both numbers count from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1 (0 where the text ended at the start of a line).
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a message is not a frame. Each kind of defect is its own variant, so that a report can name it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Longer than [`Limits::max_bytes`](super::Limits::max_bytes).
    #[error("the frame has {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// Length of the message in bytes.
        bytes: usize,
        /// The limit that it broke.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("the frame is not UTF-8: bad byte at offset {offset}")]
    InvalidUtf8 {
        /// Offset of the first bad byte, from 0.
        offset: usize,
    },
    /// Not one JSON value: broken syntax, nothing at all, or something after the value.
    #[error("the frame is not JSON: {message} at {place}")]
    Syntax {
        /// The JSON parser's reason, without the place.
        message: String,
        /// Where it stopped.
        place: Place,
    },
    /// A number beyond what a double can hold: JSON, and no reader has to take it.
    #[error("the frame is not JSON: {message} at {place}")]
    Number {
        /// The JSON parser's reason, without the place.
        message: String,
        /// Where it stopped.
        place: Place,
    },
    /// Nested deeper than [`Limits::max_depth`](super::Limits::max_depth).
    #[error("the frame nests deeper than {limit} levels at {place}")]
    TooDeep {
        /// The limit that it broke.
        limit: usize,
        /// Where the limit was passed.
        place: Place,
    },
    /// Parsed, it would take much more memory than its text: very many small values.
    #[error("the frame holds so many values that it takes more than {} MiB in memory, at {place}", limit >> 20)]
    TooCostly {
        /// What a frame of its length may take, in bytes.
        limit: usize,
        /// Where the limit was passed.
        place: Place,
    },
    /// One object names a key twice; JSON parsers disagree about which one counts.
    #[error("the key {key:?} occurs twice in one object at {place}")]
    DuplicateKey {
        /// The repeated key, unescaped.
        key: String,
        /// Where the repetition stands.
        place: Place,
    },
    /// An array of messages, with more of them than are taken.
    #[error("the frame is a batch of {count} messages, over the limit of {limit}")]
    BatchTooLong {
        /// How many there are.
        count: usize,
        /// The limit that it broke.
        limit: usize,
    },
    /// JSON, but an array or a scalar.
    #[error("the frame is {found}, not a JSON object")]
    NotAnObject {
        /// `an array`, `an empty array` (a batch without messages), `a string`, `a number`, `a boolean` or `null`.
        found: &'static str,
    },
}

impl FrameError {
    /// The stable name of the kind of defect, as protocol files and reports write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::InvalidUtf8 { .. } => "invalid-utf8",
            Self::Syntax { .. } | Self::Number { .. } => "syntax",
            Self::TooDeep { .. } => "too-deep",
            Self::TooCostly { .. } => "too-costly",
            Self::DuplicateKey { .. } => "duplicate-key",
            Self::BatchTooLong { .. } => "batch-too-long",
            Self::NotAnObject { .. } => "not-an-object",
        }
    }
}
