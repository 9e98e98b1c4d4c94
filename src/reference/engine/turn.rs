//! Playing what the model does in a turn, and cancelling it. The same for every dialect: what becomes of it on the wire is
//! the dialect's [`Agent`].

use std::future::{Future, ready};
use std::time::Duration;

use tokio::sync::watch;

use crate::cue::{Call, Fail, Response, Step};

/// Cancels what is under way.
#[derive(Debug, Default)]
pub(in crate::reference) struct Canceller(watch::Sender<u64>);

/// Hears the cancels that come after its making.
#[derive(Debug)]
pub(in crate::reference) struct Cancel(Option<(watch::Receiver<u64>, u64)>);

/// It was cancelled.
#[derive(Debug, Clone, Copy)]
pub(in crate::reference) struct Cancelled;

impl Canceller {
    /// Cancels everything that listens.
    pub fn cancel(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Listens from now on.
    pub fn listen(&self) -> Cancel {
        let receiver = self.0.subscribe();
        let seen = *receiver.borrow();
        Cancel(Some((receiver, seen)))
    }
}

impl Cancel {
    /// Nothing cancels this.
    pub fn never() -> Self {
        Self(None)
    }

    /// Whether there was a cancel.
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|(count, seen)| *count.borrow() != *seen)
    }

    /// Waits for a cancel.
    pub async fn wait(&mut self) {
        match &mut self.0 {
            // An error: the session is gone, and what it had under way with it.
            Some((count, seen)) => drop(count.wait_for(|count| *count != *seen).await),
            None => std::future::pending().await,
        }
    }

    /// Waits for some time, unless there is a cancel first.
    pub async fn sleep(&mut self, time: Duration) -> Result<(), Cancelled> {
        if self.is_set() {
            return Err(Cancelled);
        }
        if time.is_zero() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.wait() => Err(Cancelled),
        }
    }
}

/// What the model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reference) enum Speech {
    /// For the user.
    Text,
    /// For itself.
    Thought,
}

/// A chunk of it.
#[derive(Debug)]
pub(in crate::reference) struct Chunk {
    pub speech: Speech,
    pub text: String,
    /// Its place among the chunks of its step.
    pub index: usize,
    pub count: usize,
}

/// What a dialect does with a turn.
pub(in crate::reference) trait Agent: Send {
    /// How a turn leaves its path.
    type Stop: From<Cancelled> + Send;

    /// What cancels the turn.
    fn cancel(&mut self) -> &mut Cancel;

    /// A model response begins.
    fn begins(&mut self, _response: &Response) {}

    /// The chunks of a step, before the first is said. Defects change them.
    fn chunks(&mut self, _speech: Speech, chunks: Vec<String>) -> Vec<String> {
        chunks
    }

    /// Says a chunk.
    fn say(&mut self, chunk: Chunk);

    /// Thinks: a chunk at a time, as it speaks.
    fn think(
        &mut self,
        chunks: Vec<String>,
        every: Duration,
    ) -> impl Future<Output = Result<(), Self::Stop>> + Send {
        self.speak(Speech::Thought, chunks, every)
    }

    /// After a pause in the script.
    fn paused(&mut self) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Everything that the response says is said; its calls come next.
    fn text_ended(&mut self) {}

    /// Makes the calls of a response: at least one.
    fn call(&mut self, calls: Vec<Call>) -> impl Future<Output = Result<(), Self::Stop>> + Send;

    /// The provider has failed.
    fn fail(&mut self, fail: Fail) -> impl Future<Output = Self::Stop> + Send;

    /// Nothing more comes until the turn is cancelled.
    fn hang(&mut self) -> impl Future<Output = Self::Stop> + Send {
        async {
            self.cancel().wait().await;
            Cancelled.into()
        }
    }

    /// Says chunks with `every` between them.
    fn speak(
        &mut self,
        speech: Speech,
        chunks: Vec<String>,
        every: Duration,
    ) -> impl Future<Output = Result<(), Self::Stop>> + Send {
        async move {
            let chunks = self.chunks(speech, chunks);
            let count = chunks.len();
            for (index, text) in chunks.into_iter().enumerate() {
                let time = if index > 0 { every } else { Duration::ZERO };
                self.cancel().sleep(time).await?;
                self.say(Chunk { speech, text, index, count });
            }
            Ok(())
        }
    }

    /// Plays one model response.
    fn respond(&mut self, response: Response) -> impl Future<Output = Result<(), Self::Stop>> + Send {
        async {
            let every = |ms: Option<u64>| Duration::from_millis(ms.unwrap_or_default());
            let mut calls = Vec::new();
            self.begins(&response);
            for step in response {
                self.cancel().sleep(Duration::ZERO).await?;
                match step {
                    Step::Say { say, every_ms } => self.speak(Speech::Text, say, every(every_ms)).await?,
                    Step::Think { think, every_ms } => self.think(think, every(every_ms)).await?,
                    Step::Pause { pause_ms } => {
                        self.cancel().sleep(Duration::from_millis(pause_ms)).await?;
                        self.paused().await;
                    }
                    Step::Fail { fail } => return Err(self.fail(fail).await),
                    Step::Hang { .. } => return Err(self.hang().await),
                    Step::Call { call } => calls.push(call),
                }
            }
            self.text_ended();
            if calls.is_empty() { Ok(()) } else { self.call(calls).await }
        }
    }

    /// Plays model responses one after the other, until one leaves its path.
    fn play(&mut self, responses: Vec<Response>) -> impl Future<Output = Result<(), Self::Stop>> + Send {
        async {
            for response in responses {
                self.respond(response).await?;
            }
            Ok(())
        }
    }
}
