//! The requests of a connection, and how they were answered.

use std::collections::VecDeque;

/// How many requests of a connection are remembered.
const WINDOW: usize = 4096;
/// How many bytes of their ids.
const MAX_BYTES: usize = 1 << 20;

/// The last [`WINDOW`] requests of a connection.
#[derive(Clone, Default)]
pub(super) struct Asked {
    requests: VecDeque<Request>,
    bytes: usize,
    /// Some were forgotten: what fits none may have been asked for.
    pub lacking: bool,
    /// The answers with the id null that belong to requests whose id is there, but need not be read by everybody: to which of them
    /// nobody can tell, so it is only known that there are enough.
    nulls: Vec<Answer>,
    /// The newest batch of answers: its event, and that of the batch of requests which it answers.
    array: Option<(u64, u64)>,
}

#[derive(Clone)]
pub(super) struct Request {
    pub id: Option<String>,
    pub event: u64,
    pub standing: Standing,
    /// Whoever receives it can tell that it is a request, and read its id: an answer with the id null is none to it.
    pub readable: bool,
    /// It is a member of a batch: others have the same `event`.
    pub batched: bool,
    /// The event of its first answer.
    pub answer: Option<u64>,
    pub replies: u32,
    pub insteads: u32,
}

/// Which answer a message of the client may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It must be answered.
    Due,
    /// It may be answered, and need not be.
    Optional,
    /// It is no request of the pattern's, and unknown to the protocol: an answer with the id null may be to it.
    Unread,
}

/// An answer.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub event: u64,
    pub batched: bool,
    /// It is a reply, and not what comes instead of one.
    pub is_reply: bool,
}

/// The request that an answer belongs to, as it was before.
pub(super) struct Answered {
    pub event: u64,
    /// Replies, and what came instead of one.
    pub before: (u32, u32),
    /// Request or answer are in a batch, and the request had no answer before.
    pub in_batch: bool,
    /// Why it does not come in the frame in which it should.
    pub misplaced: Option<&'static str>,
}

impl Request {
    pub fn is_unanswered(&self) -> bool {
        self.replies + self.insteads == 0
    }

    /// It has had a reply, or what comes instead of one.
    pub fn count(&mut self, is_reply: bool) {
        *(if is_reply { &mut self.replies } else { &mut self.insteads }) += 1;
    }

    /// It has an id, and must be answered.
    pub fn is_due(&self) -> bool {
        self.standing == Standing::Due && self.id.is_some()
    }

    /// An answer is due.
    pub fn is_open(&self) -> bool {
        self.standing == Standing::Due && self.is_unanswered()
    }

    /// An answer with the id null may be to it.
    fn may_be_unread(&self) -> bool {
        self.is_unanswered() && !self.readable
    }
}

impl Asked {
    /// Remembers a request, and returns how many were forgotten for it.
    pub fn push(&mut self, request: Request) -> u64 {
        self.bytes += request.id.as_ref().map_or(0, String::len);
        self.requests.push_back(request);
        let mut forgotten = 0;
        while self.requests.len() > WINDOW || self.bytes > MAX_BYTES {
            let Some(request) = self.requests.pop_front() else { break };
            self.bytes -= request.id.as_ref().map_or(0, String::len);
            self.lacking = true;
            forgotten += 1;
        }
        forgotten
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }

    /// The oldest open request of which this holds.
    pub fn open(&mut self, holds: fn(&Request) -> bool) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.is_open() && holds(request))
    }

    /// The oldest unanswered request without an id that need not be answered.
    pub fn optional(&mut self) -> Option<&mut Request> {
        let optional = |one: &&mut Request| one.standing == Standing::Optional && one.id.is_none();
        self.requests.iter_mut().filter(|one| one.is_unanswered()).find(optional)
    }

    /// Takes an answer with an id. Nothing: no request had it.
    pub fn named(&mut self, id: &str, answer: Answer) -> Option<Answered> {
        let at = self.meant(id, answer.batched)?;
        let request = self.requests.get_mut(at)?;
        let mut before = (request.replies, request.insteads);
        let is_first = request.answer.is_none();
        request.count(answer.is_reply);
        request.answer.get_or_insert(answer.event);
        let (event, batched) = (request.event, request.batched);
        if before == (0, 0)
            && !request.readable
            && let Some(at) = self.first_without_request()
        {
            // One of the answers with the id null can only be to this one.
            before = if self.nulls.remove(at).is_reply { (1, 0) } else { (0, 1) };
        }
        let in_batch = is_first && (batched || answer.batched);
        let misplaced = if in_batch { self.misplaced(event, batched, answer) } else { None };
        Some(Answered { event, before, in_batch, misplaced })
    }

    /// The request that an answer with this id means. An id may be used again once it is answered: the open request, otherwise the
    /// newest. Where it is open twice, the answer in a batch is that to the one in a batch.
    fn meant(&self, id: &str, batched: bool) -> Option<usize> {
        let has_id = |request: &Request| request.id.as_deref() == Some(id);
        let open = |request: &Request| request.is_unanswered() && has_id(request);
        let requests = &self.requests;
        let alike = requests.iter().rposition(|request| open(request) && request.batched == batched);
        let open = alike.or_else(|| requests.iter().rposition(open));
        open.or_else(|| requests.iter().rposition(has_id))
    }

    /// Why an answer does not come in the frame in which it should: the first one to a request of this event.
    fn misplaced(&mut self, event: u64, batched: bool, answer: Answer) -> Option<&'static str> {
        match (batched, answer.batched) {
            (true, false) => return Some("comes alone, and its request came in a batch"),
            (false, true) => return Some("comes in a batch, and its request came alone"),
            (false, false) => return None,
            (true, true) => {}
        }
        let mut others = self.requests.iter().filter(|one| one.event == event && one.batched);
        if others.any(|one| one.answer.is_some_and(|other| other != answer.event)) {
            return Some("comes in another frame than the answers before it to the same batch");
        }
        let array = self.array.filter(|(of, _)| *of == answer.event).unwrap_or((answer.event, event));
        self.array = Some(array);
        (array.1 != event).then_some("comes in one batch with answers to another")
    }

    /// Takes an answer with the id null: it belongs to a request whose id could not be read. Nothing: there is none.
    pub fn null(&mut self, answer: Answer) -> Option<Answered> {
        let free = |request: &Request| request.may_be_unread() && request.id.is_none();
        let alike = self.requests.iter().position(|one| free(one) && one.batched == answer.batched);
        // One without an id can get no other answer.
        if let Some(at) = alike.or_else(|| self.requests.iter().position(free))
            && let Some(request) = self.requests.get_mut(at)
        {
            request.count(answer.is_reply);
            request.answer = Some(answer.event);
            let in_batch = request.batched || answer.batched;
            let (event, batched) = (request.event, request.batched);
            let misplaced = if in_batch { self.misplaced(event, batched, answer) } else { None };
            return Some(Answered { event, before: (0, 0), in_batch, misplaced });
        }
        self.nulls.push(answer);
        if self.first_without_request().is_some() {
            self.nulls.pop();
            if !self.lacking {
                return None;
            }
        }
        Some(Answered { event: answer.event, before: (0, 0), in_batch: false, misplaced: None })
    }

    /// The first of the answers with the id null that is one too many: for so many there were not enough requests before it.
    fn first_without_request(&self) -> Option<usize> {
        let mut unread = self.requests.iter().filter(|one| one.may_be_unread() && one.id.is_some());
        // Each takes the oldest one that is left: what was sent before an answer was sent before the later ones, too.
        self.nulls.iter().position(|null| unread.next().is_none_or(|request| request.event >= null.event))
    }

    /// The requests with an id that must be answered, and whether they were.
    pub fn due(&self) -> impl Iterator<Item = (&Request, bool)> {
        let mut nulls = self.nulls.iter();
        self.requests.iter().filter(|request| request.is_due()).map(move |request| {
            let by_null = request.may_be_unread() && nulls.any(|null| null.event > request.event);
            (request, !request.is_open() || by_null)
        })
    }
}
