//! Mutants of the wire: a correct server's messages, one of them mutated in one way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::operator::Others;
use super::surroundings::{Neighbours, Receivers, Surroundings};
use super::{Interceptor, Operator, Plan, Way};
use crate::frame::Pointer;
use crate::protocol::Protocol;
use crate::trace::Direction;
use crate::wire::frame::Frame;

/// How late a delayed message comes.
const LATE: Duration = Duration::from_millis(300);
/// What comes within this time counts as sent together.
const TOGETHER: Duration = Duration::from_millis(5);

/// At which of the messages that it fits a mutation strikes, on each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// At each.
    Every,
    /// At the first.
    First,
    /// At the second.
    Second,
    /// At the last of those that come together.
    Last,
}

impl Occurrence {
    /// All of them, by name.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Every, "every"), (Self::First, "first"), (Self::Second, "second"), (Self::Last, "last")];
}

/// One mutation of a server's messages.
#[derive(Debug)]
pub struct Mutation {
    /// The protocol of the messages.
    pub protocol: Arc<Protocol>,
    /// What a message says that it is; none: a reply, which does not say it.
    pub message: Option<String>,
    /// The field; `None`: the whole message.
    pub field: Option<Pointer>,
    /// The values that the schema lists for it.
    pub members: Vec<Value>,
    /// What is done to it.
    pub operator: Operator,
    /// To which of them.
    pub occurrence: Occurrence,
    /// How often it was done.
    pub hits: AtomicU64,
    neighbours: Arc<Neighbours>,
}

impl Mutation {
    /// A mutation of whole messages, at each.
    pub fn new(protocol: &Arc<Protocol>, message: Option<String>, operator: Operator) -> Self {
        Self {
            protocol: Arc::clone(protocol),
            message,
            field: None,
            members: Vec::new(),
            operator,
            occurrence: Occurrence::Every,
            hits: AtomicU64::new(0),
            neighbours: Arc::default(),
        }
    }

    /// The same of one field, for which the schema lists these values.
    #[must_use]
    pub fn of(self, field: Pointer, members: Vec<Value>) -> Self {
        Self { field: Some(field), members, ..self }
    }

    /// The same at other messages.
    #[must_use]
    pub fn at(&self, occurrence: Occurrence) -> Self {
        Self {
            field: self.field.clone(),
            members: self.members.clone(),
            occurrence,
            ..Self::new(&self.protocol, self.message.clone(), self.operator)
        }
    }

    /// How it is called: message, field, operator and occurrence.
    pub fn name(&self) -> String {
        let message = self.message.as_deref().unwrap_or("(reply)");
        let field = self.field.as_ref().map_or("", |field| field.as_str());
        let occurrence = Occurrence::ALL.iter().find(|(one, _)| *one == self.occurrence);
        let occurrence = occurrence.map_or("", |(_, name)| name);
        format!("{message}{field} {} {occurrence}", self.operator.name())
    }

    /// Whether this is a message that it may strike at.
    pub fn fits(&self, body: &Value) -> bool {
        let says = self.protocol.type_of(body);
        says == self.message.as_deref() && self.field.as_ref().is_none_or(|field| field.get(body).is_some())
    }

    /// What becomes of a connection of a server, which is called by a name of its own.
    pub fn interceptor(self: &Arc<Self>, server: &str) -> Box<dyn Interceptor> {
        Box::new(Mutator {
            mutation: Arc::clone(self),
            around: Surroundings::new(&self.neighbours, &self.protocol, server),
            seen: 0,
            greeted: false,
            earlier: None,
            held: None,
            past_turn: Vec::new(),
            together: Vec::new(),
            earlier_value: None,
        })
    }
}

struct Mutator {
    mutation: Arc<Mutation>,
    around: Surroundings,
    /// Messages that fitted so far.
    seen: u64,
    /// The server has sent a message.
    greeted: bool,
    /// The one before.
    earlier: Option<Vec<u8>>,
    /// What is sent after the next message.
    held: Option<Vec<u8>>,
    /// What is sent after the turn's end.
    past_turn: Vec<Vec<u8>>,
    /// What has come together, where it matters which is the last.
    together: Vec<(Frame, Vec<u8>)>,
    earlier_value: Option<Value>,
}

impl Mutator {
    fn is_due(&self, is_last: bool) -> bool {
        match self.mutation.occurrence {
            Occurrence::Every => true,
            Occurrence::First => self.seen == 1,
            Occurrence::Second => self.seen == 2,
            Occurrence::Last => is_last,
        }
    }

    fn hit(&self) {
        self.mutation.hits.fetch_add(1, Ordering::Relaxed);
    }

    fn message(&mut self, bytes: Vec<u8>, ends_turn: bool, plan: &mut Plan) {
        let way = Way::ToClient;
        let earlier = self.earlier.replace(bytes.clone());
        match self.mutation.operator {
            Operator::Drop => {}
            Operator::Duplicate => {
                plan.write(way, bytes.clone());
                plan.write(way, bytes);
            }
            Operator::Swap => self.held = Some(bytes),
            Operator::Delay => {
                plan.wait(way, LATE);
                plan.write(way, bytes);
            }
            Operator::PastTurn if self.around.is_in_turn() && !ends_turn => self.past_turn.push(bytes),
            Operator::Earlier => match earlier {
                Some(earlier) if earlier != bytes => plan.write(way, earlier),
                _ => return plan.write(way, bytes),
            },
            // It counts once it has come there.
            Operator::ToOtherClient => {
                self.around.post(Receivers::SameSession, &bytes);
                return plan.write(way, bytes);
            }
            Operator::ToOtherSession => {
                self.around.post(Receivers::OtherSession, &bytes);
                return plan.write(way, bytes);
            }
            _ => return plan.write(way, bytes),
        }
        self.hit();
    }

    /// The message with its field changed; `None`: there is nothing to change.
    fn field(&mut self, body: &Value, field: &Pointer, is_last: bool) -> Option<Value> {
        let value = field.get(body)?.clone();
        let mutation = Arc::clone(&self.mutation);
        let operator = mutation.operator;
        let earlier = self.earlier_value.replace(value.clone());
        // Kept for others, too, whether it strikes here or not.
        let other_session = match operator {
            Operator::OtherSessionValue => self.around.value_of_session(&value),
            _ => None,
        };
        if !self.is_due(is_last) {
            return None;
        }
        let mut body = body.clone();
        if operator == Operator::Absent {
            field.take(&mut body)?;
            return Some(body);
        }
        let other_message = match operator {
            Operator::OtherMessageValue => {
                let name = field.as_str().rsplit('/').next().unwrap_or_default();
                let name = name.replace("~1", "/").replace("~0", "~");
                self.around.value_of_another(&name, mutation.message.as_deref(), &value)
            }
            _ => None,
        };
        let members = &mutation.members;
        let others = Others { earlier: earlier.as_ref(), other_message, other_session, members };
        let changed = operator.changed(&value, &others)?;
        *body.pointer_mut(field.as_str())? = changed;
        Some(body)
    }

    /// A whole message of the server.
    fn one(&mut self, frame: Frame, bytes: Vec<u8>, is_last: bool, plan: &mut Plan) {
        let way = Way::ToClient;
        let held = self.held.take();
        let body = self.body(&frame, Direction::Recv).unwrap_or_default();
        let mutation = Arc::clone(&self.mutation);
        // What is meant for others comes behind the greeting, and before what may be the last message.
        if std::mem::replace(&mut self.greeted, true) {
            for letter in self.around.letters() {
                self.hit();
                plan.write(way, letter);
            }
        }
        let ends_turn = self.around.received(&body);
        if !mutation.fits(&body) {
            plan.write(way, bytes);
        } else {
            self.seen += 1;
            match &mutation.field {
                None if self.is_due(is_last) => self.message(bytes, ends_turn, plan),
                None => {
                    self.earlier = Some(bytes.clone());
                    plan.write(way, bytes);
                }
                Some(field) => match self.field(&body, field, is_last) {
                    Some(changed) => {
                        self.hit();
                        let payload = self.with_body(&frame, changed).to_string().into_bytes();
                        plan.write(way, Frame { payload, form: None, ..frame }.encode());
                    }
                    None => plan.write(way, bytes),
                },
            }
        }
        if mutation.operator == Operator::OtherMessageValue {
            self.around.keep_values(&body);
        }
        held.into_iter().for_each(|held| plan.write(way, held));
        if ends_turn {
            self.past_turn.drain(..).for_each(|late| plan.write(way, late));
        }
    }

    fn fits(&self, frame: &Frame) -> bool {
        is_message(frame) && self.body(frame, Direction::Recv).is_some_and(|body| self.mutation.fits(&body))
    }

    /// The message in a frame, without its envelope.
    fn body(&self, frame: &Frame, dir: Direction) -> Option<Value> {
        let whole = serde_json::from_slice(&frame.payload).ok()?;
        self.mutation.protocol.take_out(dir, whole).ok()
    }

    /// What the server's frame has in it with another message.
    fn with_body(&self, frame: &Frame, body: Value) -> Value {
        let Some(at) = self.mutation.protocol.envelope(Direction::Recv) else { return body };
        let mut whole = serde_json::from_slice(&frame.payload).unwrap_or_default();
        at.put(&mut whole, body);
        whole
    }
}

fn is_message(frame: &Frame) -> bool {
    frame.opcode == 1 && frame.fin
}

impl Interceptor for Mutator {
    fn gathers(&self, way: Way) -> Option<Duration> {
        (way == Way::ToClient && self.mutation.occurrence == Occurrence::Last).then_some(TOGETHER)
    }

    fn bytes(&mut self, way: Way, bytes: Vec<u8>, plan: &mut Plan) {
        if way == Way::ToServer {
            self.around.head(&bytes);
        }
        plan.write(way, bytes);
    }

    fn frame(&mut self, way: Way, frame: Frame, bytes: Vec<u8>, plan: &mut Plan) {
        match way {
            Way::ToServer => {
                if is_message(&frame)
                    && let Some(body) = self.body(&frame, Direction::Send)
                {
                    self.around.sent(&body);
                }
                plan.write(way, bytes);
            }
            Way::ToClient if self.mutation.occurrence == Occurrence::Last => {
                self.together.push((frame, bytes))
            }
            Way::ToClient if is_message(&frame) => self.one(frame, bytes, false, plan),
            Way::ToClient => plan.write(way, bytes),
        }
    }

    fn batch_over(&mut self, way: Way, plan: &mut Plan) {
        if way == Way::ToServer {
            return;
        }
        let together = std::mem::take(&mut self.together);
        let last = together.iter().rposition(|(frame, _)| self.fits(frame));
        for (index, (frame, bytes)) in together.into_iter().enumerate() {
            if is_message(&frame) {
                self.one(frame, bytes, last == Some(index), plan);
            } else {
                plan.write(way, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests;
