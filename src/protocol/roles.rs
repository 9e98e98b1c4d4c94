//! What messages mean in a conversation, compiled once a protocol.

use indexmap::IndexMap;

use super::extension::{At, Exchange, Pattern};
use super::{Matcher, Protocol};
use crate::frame::Pointer;
use crate::source::Diagnostics;
use crate::trace::Direction;

/// A value in messages of a pattern.
pub type Place = (Matcher, Pointer);

/// What the server's messages have that is of one session.
#[derive(Debug, Default)]
pub struct SessionPlaces {
    /// Where they tell the session that the connection is in.
    pub ids: Vec<Place>,
    /// What is for the clients of one session alone.
    pub marks: Vec<Place>,
}

/// Which messages have a part to play in every conversation: who tells the session, what ends a turn, what refuses.
#[derive(Debug, Default)]
pub struct Roles {
    /// What the server's messages have that is of one session.
    pub session: SessionPlaces,
    /// The messages of the ordered log, and their position in it.
    pub log: Option<Place>,
    /// Ends a turn.
    pub turn_end: Matcher,
    /// Refuses a command, and where its code stands.
    pub errors: Option<(Matcher, Option<Pointer>)>,
    /// Announces a capability, by its name.
    pub capabilities: IndexMap<String, Matcher>,
    /// Tells an id that the fuzzer keeps, by the id's name.
    pub seen: Vec<(String, Place)>,
    /// What a session is doing, by name.
    pub phases: IndexMap<String, Matcher>,
    /// The client's messages of openings, and those that it sends by itself.
    pub opening: Vec<usize>,
    /// The server's messages of openings.
    pub greeting: Vec<usize>,
    /// The server's answers to what is no turn: openings, barriers, queries.
    pub aside: Vec<usize>,
    /// The client's message that begins a turn.
    pub turn_start: Option<usize>,
    /// For each message, whether it may come at any time.
    ambient: Vec<bool>,
}

impl Roles {
    /// Compiles them. What does not compile plays no part; loading the protocol reports it at its place.
    pub(super) fn of(protocol: &Protocol) -> Self {
        let extension = &protocol.extension;
        let matcher = |pattern: &Pattern| compiled(Matcher::new(pattern, protocol));
        let place = |place: &At| Some((matcher(&place.message)?, place.at.clone()));
        let errors = extension.errors.as_ref();
        let announced = extension
            .capabilities
            .iter()
            .filter_map(|(name, known)| Some((name.clone(), matcher(known.announced.as_ref()?)?)));
        let seen = extension.fuzzing.seen.iter();
        let seen = seen.flat_map(|(name, places)| places.iter().map(move |place| (name, place)));
        let phases = extension.fuzzing.phases.iter();
        let is_ambient = |name: &String| extension.ambient.contains(name);
        let greeting: Vec<usize> =
            extension.openings.values().flat_map(|steps| answers(protocol, steps)).collect();
        let automatic = extension.client.values().filter_map(|rule| rule.send.as_ref());
        let automatic = automatic.filter_map(|body| protocol.message_of(body, Direction::Send));
        let opening = extension.openings.values().flat_map(|steps| requests(protocol, steps));
        let opening = opening.chain(automatic).collect();
        // What an opening may lack may also come later, and then it is the answer to something else.
        let needed = |step: &&Exchange| !step.optional;
        let openings = extension.openings.values().flat_map(|steps| steps.iter().filter(needed));
        let mut aside: Vec<usize> =
            openings.flat_map(|step| answers(protocol, std::slice::from_ref(step))).collect();
        aside.extend(answers(protocol, extension.barrier_query()));
        aside.extend(extension.state.iter().flat_map(|state| answers(protocol, &state.query)));
        aside.extend(answers(protocol, &extension.turn.before));
        Self {
            session: SessionPlaces {
                ids: extension.session.id.iter().filter_map(place).collect(),
                marks: extension.session.marks.iter().filter_map(place).collect(),
            },
            log: extension.log.as_ref().and_then(|log| Some((matcher(&log.message)?, log.id.clone()))),
            turn_end: matcher(&extension.turn.end).unwrap_or_default(),
            errors: errors.and_then(|errors| {
                Some((compiled(Matcher::of_connection(&errors.message, protocol))?, errors.code.clone()))
            }),
            capabilities: announced.collect(),
            seen: seen.filter_map(|(name, at)| Some((name.clone(), place(at)?))).collect(),
            phases: phases.filter_map(|(name, on)| Some((name.clone(), matcher(on)?))).collect(),
            opening,
            greeting,
            aside,
            turn_start: protocol.message_of(&extension.turn.start, Direction::Send),
            ambient: protocol.messages.iter().map(|message| is_ambient(&message.name)).collect(),
        }
    }

    /// Whether a message may come at any time and says nothing about the rest: a heartbeat.
    pub fn is_ambient(&self, message: usize) -> bool {
        self.ambient.get(message).copied().unwrap_or(false)
    }

    /// Whether what was sent belongs to an opening.
    pub fn opens(&self, message: Option<usize>) -> bool {
        message.is_some_and(|message| self.opening.contains(&message))
    }

    /// Whether what came looks like a part of an opening.
    pub fn greets(&self, message: Option<usize>) -> bool {
        message.is_some_and(|message| self.greeting.contains(&message))
    }
}

fn compiled(matcher: Result<Matcher, Diagnostics>) -> Option<Matcher> {
    matcher.ok()
}

/// The client's messages of an exchange.
fn requests(protocol: &Protocol, steps: &[Exchange]) -> Vec<usize> {
    let sent = steps.iter().filter_map(|step| step.send.as_ref());
    sent.filter_map(|body| protocol.message_of(body, Direction::Send)).collect()
}

/// The server's messages of an exchange.
fn answers(protocol: &Protocol, steps: &[Exchange]) -> Vec<usize> {
    let names = steps.iter().filter_map(|step| step.expect.as_ref()).flat_map(|names| names.as_slice());
    names.filter_map(|name| protocol.index_of(name, Direction::Recv)).collect()
}
