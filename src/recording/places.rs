//! Where a protocol has values that differ from run to run: keys, ids, places in a log.

use std::collections::{BTreeMap, BTreeSet};

use crate::frame::Pointer;
use crate::protocol::Protocol;
use crate::protocol::extension::{At, OneOrMany, Pattern};
use crate::protocol::rules::{Fold, Key, Rule};

/// The places, as the protocol's data names them; the elements of lists are written `*`.
#[derive(Debug, Default)]
pub struct Places {
    /// Where ids and counters stand, and what counts them: numbers of different counters are different.
    ids: BTreeMap<String, String>,
    /// What may differ each time.
    volatile: BTreeSet<String>,
    /// Messages that are pieces of a text, and where it stands in them.
    pieces: BTreeMap<String, Pointer>,
}

/// What counts the messages of a log.
const LOG: &str = "the log";

impl Places {
    /// Those of a protocol. `ignored`: places that the user does not want compared.
    pub fn of(protocol: &Protocol, ignored: &[Pointer]) -> Self {
        let (extension, mut places) = (&protocol.extension, Self::default());
        places.volatile.extend(ignored.iter().map(general));
        if let Some(log) = &extension.log {
            places.log(&log.id);
            places.volatile.extend(log.volatile.iter().map(general));
        }
        if let Some(replies) = &extension.replies {
            places.id(&replies.id);
        }
        extension.session.id.iter().for_each(|at| places.id(&at.at));
        if let crate::protocol::extension::Join::Field(at) = &extension.session.join {
            places.id(at);
        }
        for request in extension.requests.values() {
            request.id.iter().chain(request.resolved.iter().map(|at| &at.at)).for_each(|at| places.id(at));
        }
        let fields = extension.fuzzing.ids.values().flat_map(|rule| &rule.fields);
        fields.for_each(|place| places.id(&place.at));
        // Twice: what shows an id of another rule's is one, too.
        for _ in 0..2 {
            extension.invariants.values().for_each(|invariant| places.rule(&invariant.monitor));
        }
        places.counters(protocol);
        // What stands in a message stands in a list of them, too.
        let own: Vec<(String, String)> = places.ids.clone().into_iter().collect();
        let volatile: Vec<String> = places.volatile.iter().cloned().collect();
        let lists = extension.parts.values().map(|part| general(&part.at)).chain(shown_lists(protocol));
        for list in lists {
            for (at, counter) in &own {
                places.ids.entry(format!("{list}/*{at}")).or_insert_with(|| counter.clone());
            }
            places.volatile.extend(volatile.iter().map(|at| format!("{list}/*{at}")));
        }
        places
    }

    fn id(&mut self, at: &Pointer) {
        let at = general(at);
        self.ids.entry(at.clone()).or_insert(at);
    }

    /// What shows the value of another place: an id, if that is one.
    fn id_beside(&mut self, at: &Pointer, shown: &Pointer) {
        if self.ids.contains_key(&general(shown)) {
            self.id(at);
        }
    }

    fn log(&mut self, at: &Pointer) {
        self.ids.insert(general(at), LOG.to_owned());
    }

    /// A growing number is a place in a log where messages are identified by it. Elsewhere, as with the tokens that were used or how far a
    /// request has come, it says something, and another number is a difference.
    fn counters(&mut self, protocol: &Protocol) {
        let rules = || protocol.extension.invariants.values().map(|invariant| &invariant.monitor);
        let same: BTreeSet<String> = rules()
            .filter_map(|rule| if let Rule::Series(rule) = rule { Some(&rule.same) } else { None })
            .flat_map(|same| same.iter().map(general))
            .collect();
        for rule in rules() {
            let Rule::Increasing(rule) = rule else { continue };
            let at = general(&rule.at);
            if self.ids.contains_key(&at) || same.contains(&at) {
                self.log(&rule.at);
            }
        }
    }

    fn key<'k>(&mut self, key: impl IntoIterator<Item = &'k Key>) {
        for key in key {
            match key {
                Key::Same(at) => self.id(at),
                Key::Each(one, other) => [one, other].into_iter().for_each(|at| self.id(at)),
                Key::ByMessage(places) => {
                    let through = places.iter().filter_map(|place| place.through.as_ref());
                    let through = through.flat_map(|through| [&through.at, &through.gives]);
                    let all = places.iter().map(|place| &place.at).chain(through);
                    all.flat_map(|places| places.as_slice()).for_each(|at| self.id(at));
                }
            }
        }
    }

    fn piece(&mut self, piece: &At) {
        for name in names(&piece.message) {
            self.pieces.insert(name.to_owned(), piece.at.clone());
        }
    }

    /// What a monitor pairs, counts or keys by is an id.
    fn rule(&mut self, rule: &Rule) {
        match rule {
            Rule::Increasing(rule) => self.key(&rule.key),
            Rule::Replay(rule) => {
                self.log(&rule.resume.at);
                rule.resets.iter().chain(&rule.instead).for_each(|at| self.log(&at.at));
            }
            Rule::Projection(rule) => {
                self.log(&rule.cursor);
                for fact in rule.facts.values() {
                    match &fact.fold {
                        Fold::Newest {} => self.log(&fact.at),
                        Fold::Open { item, .. } => {
                            let item = format!("{}/*{}", general(&fact.at), general(item));
                            self.ids.insert(item.clone(), item);
                        }
                        Fold::Latest { set, .. } => self.id_beside(&fact.at, &set.at),
                        Fold::Items { .. } | Fold::Count { .. } => {}
                    }
                }
            }
            Rule::Correlation(rule) => self.key(&rule.id),
            Rule::Echo(rule) => self.key([&rule.id]),
            Rule::States(rule) => self.key([&rule.key]),
            Rule::Precedence(rule) => {
                self.key(&rule.key);
                rule.known.iter().flat_map(|known| [&known.at, &known.named]).for_each(|at| self.id(at));
            }
            Rule::Absence(rule) => {
                self.key(&rule.key);
                self.key(rule.answered.iter().filter_map(|answered| answered.id.as_ref()));
            }
            Rule::Response(rule) => self.key(&rule.key),
            Rule::Existence(rule) => self.key(&rule.key),
            Rule::Constant(rule) => self.key(&rule.key),
            Rule::Unique(rule) => rule.identity.iter().chain([&rule.at]).for_each(|at| self.id(at)),
            Rule::Bracket(rule) => rule.exempt.iter().for_each(|at| self.id(&at.at)),
            Rule::Concatenation(rule) => {
                self.key(&rule.key);
                self.piece(&rule.piece);
            }
            Rule::Cued(rule) => {
                self.key(&rule.key);
                self.piece(&rule.piece);
            }
            Rule::Dialogue(rule) => self.piece(&rule.piece),
            Rule::Increments(rule) => {
                self.key([&rule.key]);
                let names: Vec<String> = names(&rule.message).into_iter().map(str::to_owned).collect();
                self.pieces.extend(names.into_iter().map(|name| (name, rule.at.clone())));
            }
            Rule::Series(rule) => self.key([&rule.key]),
            Rule::Holds(rule) => self.key(&rule.key),
            Rule::Agreement(_)
            | Rule::ServerRequests(_)
            | Rule::Relation(_)
            | Rule::Proportion(_)
            | Rule::Cadence(_) => {}
        }
    }

    /// What counts or names the ids at a place; none: there is no id.
    pub fn counter(&self, place: &str) -> Option<&str> {
        self.ids.get(place).map(String::as_str)
    }

    /// Whether what stands there, or above it, may differ each time.
    pub fn is_volatile(&self, place: &str) -> bool {
        self.volatile.contains(place)
    }

    /// Where a message of this type has a piece of a text.
    pub fn piece_of(&self, kind: &str) -> Option<&Pointer> {
        self.pieces.get(kind)
    }
}

/// Lists in which a state message shows earlier messages.
fn shown_lists(protocol: &Protocol) -> Vec<String> {
    let mut lists = Vec::new();
    for invariant in protocol.extension.invariants.values() {
        let Rule::Projection(rule) = &invariant.monitor else { continue };
        let shown = rule.facts.values().filter(|fact| matches!(fact.fold, Fold::Items { .. }));
        lists.extend(shown.map(|fact| general(&fact.at)));
    }
    lists
}

/// A place, whichever element of a list it is in.
fn general(at: &Pointer) -> String {
    let token = |token: &str| {
        if token.bytes().all(|byte| byte.is_ascii_digit()) { "*".to_owned() } else { token.to_owned() }
    };
    at.as_str().split('/').skip(1).map(|one| format!("/{}", token(one))).collect()
}

/// The message types of a pattern.
fn names(pattern: &Pattern) -> Vec<&str> {
    match pattern {
        Pattern::Type(name) => vec![name],
        Pattern::Types(names) => names.iter().map(String::as_str).collect(),
        Pattern::Any(any) => any.any.iter().flat_map(names).collect(),
        Pattern::Where(pattern) => {
            pattern.types.iter().flat_map(OneOrMany::as_slice).map(String::as_str).collect()
        }
    }
}
