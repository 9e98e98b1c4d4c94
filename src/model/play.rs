//! Playing the steps of one response.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::api::{Dialect, Sse};
use super::error::ApiError;
use super::reply::{Kind, Reply};
use crate::cue::{Call, Fail, Step};

/// Characters of a tool call's arguments that go out at once: few, so that clients have to put pieces together.
const PIECE: usize = 12;
/// How long `hang` lasts where nobody cancels it.
const HANG: Duration = Duration::from_secs(3600);

/// Why a response ends before its steps do.
#[derive(Debug)]
pub(super) enum Stop {
    /// The provider fails.
    Failed(ApiError),
    /// The client is gone.
    Gone,
    /// It hung for an hour: the connection is cut.
    Hung,
    /// It hung until its case was over: nothing more is played.
    Released,
}

/// What a `fail` step does on this try: an error, or nothing any more.
fn failure(fail: &Fail, retry: u32) -> Option<ApiError> {
    if fail.times.is_some_and(|times| retry >= times) {
        return None;
    }
    let mut error = ApiError::new(fail.status, fail.message.clone());
    error.retry_after_ms = fail.retry_after_ms.or(error.retry_after_ms);
    Some(error)
}

/// The error with which a response begins, after the pauses before it: it can still be the HTTP status. Returns the steps
/// that are left where there is none.
pub(super) async fn refusal(steps: Vec<Step>, retry: u32) -> Result<Vec<Step>, ApiError> {
    let decided = steps.iter().position(|step| match step {
        Step::Pause { .. } => false,
        Step::Fail { fail } => failure(fail, retry).is_some(),
        _ => true,
    });
    let Some(Step::Fail { fail }) = decided.and_then(|at| steps.get(at)) else { return Ok(steps) };
    let Some(error) = failure(fail, retry) else { return Ok(steps) };
    for step in &steps {
        match step {
            Step::Pause { pause_ms } => sleep(Duration::from_millis(*pause_ms)).await,
            Step::Fail { fail } if failure(fail, retry).is_some() => break,
            _ => {}
        }
    }
    Err(error)
}

/// Plays steps into a reply, and event by event into a stream if there is one.
pub(super) struct Player {
    pub dialect: Box<dyn Dialect>,
    pub reply: Reply,
    /// Which try this is.
    pub retry: u32,
    /// The stream; none: the answer goes out as a whole.
    pub stream: Option<mpsc::Sender<Bytes>>,
    /// Closed when a hang is over; none: it lasts until it is cancelled.
    pub hangs_until: Option<watch::Receiver<()>>,
    open: bool,
    out: Sse,
}

impl Player {
    pub fn new(dialect: Box<dyn Dialect>, reply: Reply, retry: u32) -> Self {
        Self { dialect, reply, retry, stream: None, hangs_until: None, open: false, out: Sse::default() }
    }

    /// Plays the steps from the beginning to the end of an answer.
    pub async fn play(&mut self, steps: Vec<Step>) -> Result<(), Stop> {
        self.dialect.begin(&self.reply, &mut self.out);
        self.send().await?;
        for step in steps {
            match self.step(step).await {
                Err(Stop::Released) => break,
                played => played?,
            }
        }
        self.close();
        self.dialect.end(&self.reply, &mut self.out);
        self.send().await
    }

    /// Tells the client of a stream that the provider failed.
    pub async fn fail(&mut self, error: &ApiError) -> Result<(), Stop> {
        self.dialect.fail(&self.reply, error, &mut self.out);
        self.send().await
    }

    async fn step(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Say { say, every_ms } => self.pieces(Kind::Text, say, every_ms).await,
            Step::Think { think, every_ms } if self.dialect.thinks() => {
                self.pieces(Kind::Think, think, every_ms).await
            }
            Step::Call { call } if self.dialect.calls() => self.call(call).await,
            Step::Think { .. } | Step::Call { .. } => Ok(()),
            Step::Pause { pause_ms } => self.wait(Duration::from_millis(pause_ms)).await,
            Step::Fail { fail } => {
                failure(&fail, self.retry).map_or(Ok(()), |error| Err(Stop::Failed(error)))
            }
            Step::Hang { hang: false } => Ok(()),
            Step::Hang { hang: true } => {
                let over = self.hangs_until.clone();
                let over = async {
                    match over {
                        // Nothing is ever sent: the end of the channel tells.
                        Some(mut over) => while over.changed().await.is_ok() {},
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    waited = self.wait(HANG) => waited.and(Err(Stop::Hung)),
                    () = over => Err(Stop::Released),
                }
            }
        }
    }

    async fn pieces(&mut self, kind: Kind, pieces: Vec<String>, every_ms: Option<u64>) -> Result<(), Stop> {
        for (number, piece) in pieces.iter().enumerate() {
            if let Some(ms) = every_ms.filter(|_| number > 0) {
                self.wait(Duration::from_millis(ms)).await?;
            }
            if piece.is_empty() {
                continue;
            }
            if !self.open || self.reply.blocks.last().is_none_or(|block| block.kind != kind) {
                self.begin(kind.clone());
            }
            self.piece(piece).await?;
        }
        Ok(())
    }

    async fn call(&mut self, call: Call) -> Result<(), Stop> {
        self.begin(Kind::Call(call.name));
        let arguments = serde_json::Value::Object(call.args).to_string();
        let characters: Vec<char> = arguments.chars().collect();
        for piece in characters.chunks(PIECE) {
            self.piece(&piece.iter().collect::<String>()).await?;
        }
        self.close();
        Ok(())
    }

    fn begin(&mut self, kind: Kind) {
        self.close();
        self.reply.open(kind);
        self.open = true;
        if let Some(block) = self.reply.blocks.last() {
            self.dialect.open(&self.reply, block, &mut self.out);
        }
    }

    async fn piece(&mut self, piece: &str) -> Result<(), Stop> {
        if let Some(block) = self.reply.blocks.last_mut() {
            block.content.push_str(piece);
        }
        if let Some(block) = self.reply.blocks.last() {
            self.dialect.delta(&self.reply, block, piece, &mut self.out);
        }
        self.send().await
    }

    fn close(&mut self) {
        if let Some(block) = self.reply.blocks.last().filter(|_| self.open) {
            self.dialect.close(&self.reply, block, &mut self.out);
        }
        self.open = false;
    }

    /// Waits, unless the client goes away. Without a stream it is the caller that is dropped then.
    async fn wait(&mut self, time: Duration) -> Result<(), Stop> {
        // What is ready must not wait along.
        self.send().await?;
        match &self.stream {
            None => sleep(time).await,
            Some(stream) => tokio::select! {
                () = sleep(time) => {}
                () = stream.closed() => return Err(Stop::Gone),
            },
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Stop> {
        let ready = self.out.take();
        match &self.stream {
            Some(stream) if !ready.is_empty() => {
                stream.send(Bytes::from(ready)).await.map_err(|_| Stop::Gone)
            }
            _ => Ok(()),
        }
    }
}
