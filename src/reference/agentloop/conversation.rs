//! One connection's conversation: what is sent in it, and what its turn waits for.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::Behaviour;
use super::Shared;
use super::asking::LATE;
use super::context::Context;
use super::faults::Defect;
use super::items::{Command, message};
use super::styles::Style;
use super::variants;
use crate::reference::engine::Happening;
use crate::reference::engine::clients::Outbox;

/// Items that a defect holds back no longer than this come as a client expects them.
const UNNOTICED: Duration = Duration::from_millis(20);

/// A conversation, shared by the connection's reader and the turn.
pub(super) struct Conversation {
    pub shared: Arc<Shared>,
    behaviour: Behaviour,
    /// The connection's number.
    pub number: u64,
    outbox: Outbox,
    inner: Mutex<Inner>,
    /// Something that a turn may wait for has changed.
    pub changed: Notify,
}

#[derive(Default)]
pub(super) struct Inner {
    pub context: Context,
    /// A turn is under way.
    pub busy: bool,
    /// Approvals that are outstanding.
    pub asking: usize,
    /// Answers that the turn has not taken yet.
    pub answers: VecDeque<Answer>,
    /// Commands that need no more approval.
    pub always: HashSet<Vec<String>>,
    /// The command that waits for its approval.
    pub pending: Option<Command>,
    /// What was decided before, for defects that remember it.
    pub denied: HashSet<Vec<String>>,
    pub programs: HashSet<String>,
    /// Text of a failed turn that a defect keeps.
    pub leftover: String,
    /// The patch of the newest request, for a defect that shows it again.
    pub patch: Option<Value>,
    /// Inputs that wait for the turn's end, and whether somebody takes them.
    pub inputs: VecDeque<(String, String)>,
    pub playing: bool,
    pub turns: u64,
    /// A turn has finished.
    pub finished: bool,
    /// The newest turn has failed.
    pub failed: bool,
    pub calls: u64,
    pub queries: u64,
    /// Items that a defect holds back, and since when.
    held: Vec<(String, Value, Instant)>,
    /// The turn of the newest item whose message id a defect repeats.
    repeats: Option<u64>,
    /// Ids of items that a defect gives again.
    pub plain_ids: HashSet<String>,
    /// Commands about which a defect has remembered something else than was decided.
    pub misremembered: HashSet<Vec<String>>,
    frames: u64,
}

/// A review, with the reason of a denial.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub review: Review,
    pub reason: Option<String>,
}

/// The five reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Review {
    Yes,
    Always,
    NoContinue,
    NoExit,
    Explain,
}

impl Review {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "yes" => Self::Yes,
            "always" => Self::Always,
            "no-continue" => Self::NoContinue,
            "no-exit" => Self::NoExit,
            "explain" => Self::Explain,
            _ => return None,
        })
    }
}

impl Conversation {
    pub fn new(shared: &Arc<Shared>, number: u64, outbox: Outbox) -> Self {
        Self {
            shared: Arc::clone(shared),
            behaviour: shared.behaviour.of_session(),
            number,
            outbox,
            inner: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    pub fn style(&self, style: Style) -> bool {
        self.behaviour.style(style)
    }

    pub fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message that answers, or belongs to the turn of, the client's message `cause`.
    pub fn send(&self, cause: &str, kind: &str, payload: Value) {
        self.send_within(&mut self.lock(), cause, kind, payload);
    }

    fn send_within(&self, inner: &mut Inner, cause: &str, kind: &str, payload: Value) {
        let last = kind == "loading_state" && payload["loading"] == json!(false);
        if kind == "response_item" && self.behaviour.prepares(Defect::HoldsItemsBack) {
            inner.held.push((cause.to_owned(), payload, Instant::now()));
            return;
        }
        // An approval needs its answer; all else can wait.
        if last || kind == "approval_request" {
            for (cause, payload, since) in std::mem::take(&mut inner.held) {
                if since.elapsed() > UNNOTICED {
                    self.behaviour.took_effect();
                }
                self.transmit(inner, &cause, "response_item", payload);
            }
        }
        self.transmit(inner, cause, kind, payload);
        let mut again = false;
        self.behaviour().mutate(&mut again, |defect, again| match defect {
            Defect::LoadingTwice => *again = kind == "loading_state" && !last,
            Defect::IdleTwice => *again = last,
            _ => {}
        });
        if again {
            self.transmit(inner, cause, kind, json!({ "loading": !last }));
        }
    }

    fn transmit(&self, inner: &mut Inner, cause: &str, kind: &str, payload: Value) {
        inner.frames += 1;
        let echoes = self.style(Style::EchoesIds) && !cause.is_empty();
        let id = if self.has(Defect::IdsAreNumbers) {
            inner.frames.to_string()
        } else if kind == "response_item" && self.behaviour.prepares(Defect::IdsRepeat) {
            if inner.repeats.replace(inner.turns) == Some(inner.turns) {
                self.behaviour.took_effect();
            }
            Uuid::from_u128(inner.turns.into()).to_string()
        } else if echoes && matches!(kind, "context_info" | "error") {
            cause.to_owned()
        } else if self.style(Style::PlainIds) {
            format!("srv-{}-{}", self.number, inner.frames)
        } else {
            Uuid::new_v4().to_string()
        };
        let mut frame = json!({ "id": id, "type": kind, "payload": payload });
        apply_frame_fault(&mut frame, kind, self.behaviour());
        variants::shape_frame(self.behaviour(), &mut frame, kind);
        let mut text = frame.to_string();
        self.behaviour().mutate(&mut text, |defect, text| {
            if defect == Defect::UsageIsNan && frame["payload"]["transcriptLength"] == json!(0) {
                *text = text.replace("\"usagePercent\":0.0", "\"usagePercent\":NaN");
            }
        });
        let mut message = Message::text(text);
        self.behaviour().mutate(&mut message, |defect, message| {
            if defect == Defect::BinaryFinish && kind == "agent_finished" {
                *message = Message::Binary(message.clone().into_data());
            }
        });
        self.outbox_for(cause, kind).send(message);
    }

    /// The connection that a message goes to: this one.
    fn outbox_for(&self, cause: &str, kind: &str) -> Outbox {
        let state = self.shared.lock();
        let is_other = state.routes.get(cause).is_some_and(|(number, _)| *number != self.number);
        let mut elsewhere = false;
        self.behaviour().mutate(&mut elsewhere, |defect, elsewhere| match defect {
            _ if !is_other => {}
            Defect::RoutesByClientId => *elsewhere = matches!(kind, "response_item" | "error"),
            Defect::TurnsOutliveConnections => *elsewhere = state.orphans.contains(cause),
            _ => {}
        });
        let other = state.routes.get(cause).filter(|_| elsewhere);
        other.map_or(&self.outbox, |(_, outbox)| outbox).clone()
    }

    /// Notes that this connection uses a message id.
    pub fn note_route(&self, id: &str) {
        let mut state = self.shared.lock();
        if self.behaviour().prepares(Defect::RoutesByClientId) {
            state.routes.entry(id.to_owned()).or_insert_with(|| (self.number, self.outbox.clone()));
        } else if self.behaviour().prepares(Defect::TurnsOutliveConnections) {
            state.routes.insert(id.to_owned(), (self.number, self.outbox.clone()));
        }
    }

    /// Whether another connection has used the id since.
    pub fn is_rerouted(&self, id: &str) -> bool {
        self.shared.lock().routes.get(id).is_some_and(|(number, _)| *number != self.number)
    }

    /// Announces that the agent takes new input.
    pub fn finish(&self, cause: &str) {
        let mut inner = self.lock();
        inner.busy = false;
        self.transmit_finish(&mut inner, cause);
    }

    /// Announces that the agent is idle and takes new input. Both at once, so that no other input comes between.
    pub fn finish_when_idle(&self, cause: &str) {
        let mut inner = self.lock();
        self.send_within(&mut inner, cause, "loading_state", json!({ "loading": false }));
        inner.busy = false;
        self.transmit_finish(&mut inner, cause);
    }

    /// A defect: the turn is finished before it is idle. Both at once, so that no other turn comes between.
    pub fn finish_before_idle(&self, cause: &str) {
        let mut inner = self.lock();
        inner.busy = false;
        self.transmit_finish(&mut inner, cause);
        self.transmit(&mut inner, cause, "loading_state", json!({ "loading": false }));
    }

    fn transmit_finish(&self, inner: &mut Inner, cause: &str) {
        let turn = if inner.turns > 1 && self.has(Defect::ResponseIdRepeats) { 1 } else { inner.turns };
        let mut times = 1;
        self.behaviour().mutate(&mut times, |defect, times| match defect {
            Defect::NeverFinishes => *times = 0,
            Defect::FinishesTwice => *times = 2,
            _ => {}
        });
        inner.finished = true;
        for time in 0..times {
            let again = if time > 0 { "_again" } else { "" };
            let id = format!("resp_{}_{turn}{again}", self.number);
            let id = if self.style(Style::LongResponseIds) { Uuid::new_v4().to_string() } else { id };
            let payload = json!({ "responseId": id });
            self.transmit(inner, cause, "agent_finished", payload);
        }
    }

    /// A defect: the same once more.
    pub fn finish_again(&self, cause: &str) {
        let mut inner = self.lock();
        if !inner.busy {
            self.transmit(
                &mut inner,
                cause,
                "agent_finished",
                json!({ "responseId": Uuid::new_v4().to_string() }),
            );
        }
    }

    /// The next input that waits; none: nobody takes them any more.
    pub fn next_input(&self) -> Option<(String, String)> {
        let mut inner = self.lock();
        let next = inner.inputs.pop_front();
        inner.playing = next.is_some();
        if next.is_some() {
            inner.busy = true;
            inner.turns += 1;
            self.behaviour.note(Happening::Turn);
        }
        next
    }

    /// The next input that waits, for the turn that runs to answer, too.
    pub fn joining_input(&self) -> Option<(String, String)> {
        self.lock().inputs.pop_front()
    }

    /// Compacts without being asked.
    pub fn compact_unasked(&self) {
        let report = self.lock().context.compact(&self.behaviour);
        self.send("", "context_compacted", report);
    }

    /// Compacts without being asked, where nothing else is under way and it gains something.
    pub fn compact_idle(&self) {
        let gains = {
            let inner = self.lock();
            !inner.busy && !inner.context.is_compact()
        };
        if gains {
            self.compact_unasked();
        }
    }

    /// Tells of the context without being asked.
    pub fn report_context(&self) {
        let info = self.lock().context.info(&self.behaviour);
        self.send("", "context_info", info);
    }

    /// A defect: a turn that nobody has asked for.
    pub fn small_turn(&self, cause: &str) {
        self.lock().turns += 1;
        self.send(cause, "loading_state", json!({ "loading": true }));
        let item = message("resp_info", "assistant", "let me see", &self.behaviour.without_defect());
        self.send(cause, "response_item", item);
        self.send(cause, "loading_state", json!({ "loading": false }));
        self.finish(cause);
    }

    /// A defect: the same later, if nothing has been sent until then.
    pub async fn small_turn_late(&self, cause: &str) {
        let frames = self.lock().frames;
        tokio::time::sleep(LATE).await;
        if self.lock().frames == frames {
            self.behaviour.took_effect();
            self.small_turn(cause);
        }
    }

    /// A defect: a text that is no message of the document.
    pub fn ping(&self) {
        self.outbox.send(Message::text("ping"));
    }

    /// Sends a close frame.
    pub fn hang_up(&self, close: Message) {
        self.outbox.send(close);
    }

    /// Refuses a message that is invalid in itself.
    pub fn refuse(&self, cause: &str, message: &str) {
        if self.style(Style::SilentOnInvalid) {
            return self.behaviour.note(Happening::Error);
        }
        self.error(cause, message, Value::Null);
    }

    pub fn error(&self, cause: &str, message: &str, details: Value) {
        self.behaviour.note(Happening::Error);
        let mut payload = json!({ "message": message, "details": details });
        if self.has(Defect::ErrorWithoutMessage) {
            payload = json!({ "code": 400 });
        }
        self.send(cause, "error", payload);
    }

    /// Sends an item and counts it.
    pub fn item(&self, cause: &str, item: Value) {
        let text = item.to_string();
        self.count(cause, &text);
        self.send(cause, "response_item", item);
    }

    /// Takes a text into the context, and reports the compaction that this makes necessary.
    pub fn count(&self, cause: &str, text: &str) {
        let report = self.lock().context.add(text, self.behaviour());
        if let Some(report) = report.filter(|_| !self.has(Defect::SilentCompaction)) {
            self.send(cause, "context_compacted", report);
        }
    }
}

/// What a defect makes of a frame.
fn apply_frame_fault(frame: &mut Value, kind: &str, behaviour: &Behaviour) {
    behaviour.mutate(frame, |defect, frame| match (defect, kind) {
        (Defect::ErrorWithoutId, "error") => {
            frame.as_object_mut().map(|frame| frame.remove("id"));
        }
        (Defect::LoadingBesidePayload, "loading_state") => {
            let loading = frame["payload"]["loading"].clone();
            *frame = json!({ "id": frame["id"], "type": kind, "loading": loading });
        }
        (Defect::LoadingAsText, "loading_state") => {
            let text = frame["payload"]["loading"].to_string();
            frame["payload"]["loading"] = json!(text);
        }
        (Defect::LoadingInAnArray, "loading_state") => *frame = json!([frame]),
        (Defect::NoResponseId, "agent_finished") => frame["payload"] = json!({}),
        _ => {}
    });
}
