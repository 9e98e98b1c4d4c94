//! Requests and their replies.

use serde_json::Value;

use super::history::same;
use super::keys::Keys;
use super::{Compile, Finding, Item, Items};
use crate::protocol::Protocol;
use crate::protocol::rules as rule;
use crate::trace::Direction;

/// Which message a body is; of a reply, by the newest request of its id that was not answered before.
pub(super) fn identify(
    protocol: &Protocol,
    items: &Items,
    conn: usize,
    dir: Direction,
    body: &Value,
) -> Option<usize> {
    let Some(replies) = &protocol.extension.replies else { return protocol.message_of(body, dir) };
    if !protocol.is_reply(body) {
        return protocol.message_of(body, dir);
    }
    let id = replies.id.get(body)?;
    // Parts of messages are no messages of their own here.
    let whole =
        items.all.iter().rev().filter(|item| item.message.is_none_or(|at| at < protocol.messages.len()));
    let mut same = whole.filter(|item| item.conn == conn && item.get(&replies.id) == Some(id));
    let newest = same.find(|item| (item.dir != dir) != protocol.is_reply(&item.body));
    let request =
        newest.filter(|item| item.dir != dir).map(|item| protocol.type_of(&item.body).unwrap_or_default());
    protocol.reply_of(body, dir, request)
}

pub(super) fn echo(rule: &rule::Echo, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (request, reply) = (c.pattern(&rule.request), c.pattern(&rule.reply));
    let ids = Keys::ids(Some(&rule.id), c, items, |item| item.is(&request));
    let asks = |item: &Item| item.is(&request) && rule.asked.get(&item.body).is_some();
    let mut found = Vec::new();
    for (index, item) in items.iter().filter(|(_, item)| item.is(&reply) && !asks(item)) {
        let Some(id) = ids.of(item) else { continue };
        let mut alike = items
            .before_on_conn(index)
            .map(|(_, other)| other)
            .filter(|other| ids.of(other).as_ref() == Some(&id));
        let newest = alike.find(|other| asks(other) || other.is(&reply));
        if let Some(asked) = newest.filter(|other| asks(other))
            && !rule
                .asked
                .get(&asked.body)
                .zip(rule.told.get(&item.body))
                .is_some_and(|(asked, told)| same(&asked, &told))
        {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Due,
    Optional,
    Unread,
}

/// Whether a receiver must take it for a request with an id.
fn is_readable(protocol: &Protocol, item: &Item, id: Option<&String>) -> bool {
    let id = id.and_then(|id| serde_json::from_str::<Value>(id).ok());
    let message = item.message.and_then(|at| protocol.messages.get(at));
    protocol.type_of(&item.body).is_some()
        && id.is_some_and(|id| id.is_string() || id.is_i64() || id.is_u64())
        && message.is_none_or(|message| message.validate(&item.body).is_empty())
}

/// A request with the answers that it has had.
struct Asked {
    event: u64,
    id: Option<String>,
    standing: Standing,
    readable: bool,
    replies: usize,
    insteads: usize,
}

impl Asked {
    fn is_open(&self) -> bool {
        self.standing == Standing::Due && self.replies + self.insteads == 0
    }

    /// Whether an answer with the id null may be to it.
    fn may_be_unread(&self) -> bool {
        self.replies + self.insteads == 0 && !self.readable
    }
}

pub(super) fn correlation(
    rule: &rule::Correlation,
    c: &Compile<'_>,
    items: &Items,
    settled: bool,
) -> Vec<Finding> {
    let (request, reply) = (c.pattern(&rule.request), c.pattern(&rule.reply));
    let (instead, optional) = (c.optional(rule.instead.as_ref()), c.optional(rule.optional.as_ref()));
    let asks = |item: &Item| !item.is(&reply) && !item.is_any(instead.as_ref());
    let ids = Keys::ids(rule.id.as_ref(), c, items, asks);
    let nulls = Keys::nulls(rule.id.as_ref(), c, items, asks);
    let id = |item: &Item| ids.of(item);
    let mut found = Vec::new();
    for conn in 0..items.ended.len() {
        let mut asked = Requests::default();
        for item in items.all.iter().filter(|item| item.conn == conn) {
            let (is_reply, is_instead) = (item.is(&reply), item.is_any(instead.as_ref()));
            let is_null = rule.echo.is_empty() && (is_reply || is_instead) && nulls.of(item).is_some();
            let broken = if is_null && asked.unread(item.event, is_reply) {
                None
            } else if is_null && asked.all.iter().any(Asked::is_open) {
                is_reply.then_some(&rule.unsolicited)
            } else if is_reply {
                answered(rule, &mut asked, id(item))
            } else if is_instead {
                refused(rule, &mut asked, id(item))
            } else {
                let standing = if item.is(&request) {
                    Some(Standing::Due)
                } else if item.is_any(optional.as_ref()) {
                    Some(Standing::Optional)
                } else {
                    let answers = c.0.extension.replies.as_ref().is_some_and(|replies| {
                        [&replies.result, &replies.error].iter().any(|part| part.get(&item.body).is_some())
                    });
                    let is_unread = item.dir == Direction::Send && item.message.is_none() && !answers;
                    is_unread.then_some(Standing::Unread)
                };
                if let Some(standing) = standing {
                    let (event, id) = (item.event, id(item));
                    let readable = is_readable(c.0, item, id.as_ref());
                    let id = id.filter(|_| standing != Standing::Unread);
                    asked.all.push(Asked { event, id, standing, readable, replies: 0, insteads: 0 });
                }
                None
            };
            found.extend(broken.map(|ids| (Some(item.event), ids.clone())));
        }
        if settled && items.is_open(conn) {
            let is_missing = |one: &&Asked| one.id.is_some() && one.is_open();
            // Those that answers with the id null can belong to are answered: the older ones first.
            let mut by_null: Vec<&Asked> = Vec::new();
            for one in asked.all.iter().filter(is_missing).filter(|one| one.may_be_unread()) {
                let more = [by_null.clone(), vec![one]].concat();
                if matching(&more, &asked.nulls) == more.len() {
                    by_null = more;
                }
            }
            let open = asked.all.iter().filter(is_missing);
            let open = open.filter(|one| by_null.iter().all(|other| !std::ptr::eq(*one, *other)));
            found.extend(open.map(|one| (Some(one.event), rule.missing.clone())));
        }
    }
    found
}

/// The requests of a connection, and the answers with the id null that belong to some of those that have one.
#[derive(Default)]
struct Requests {
    all: Vec<Asked>,
    nulls: Vec<Null>,
}

#[derive(Clone, Copy)]
struct Null {
    event: u64,
    is_reply: bool,
}

/// How many of the answers can each have a request of its own that was sent before.
fn matching(requests: &[&Asked], nulls: &[Null]) -> usize {
    fn finds(
        at: usize,
        requests: &[&Asked],
        nulls: &[Null],
        of: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for place in 0..requests.len() {
            if requests[place].event >= nulls[at].event || std::mem::replace(&mut seen[place], true) {
                continue;
            }
            let moves = of[place].is_none_or(|other| finds(other, requests, nulls, of, seen));
            if moves {
                of[place] = Some(at);
                return true;
            }
        }
        false
    }
    let mut of = vec![None; requests.len()];
    (0..nulls.len())
        .filter(|at| finds(*at, requests, nulls, &mut of, &mut vec![false; requests.len()]))
        .count()
}

impl Requests {
    /// The request that an answer with this id means: of those with the id the newest open one, or else the newest. With it, the
    /// number of replies and of others that it had before.
    fn meant(&mut self, id: Option<&String>) -> Option<(&mut Asked, usize, usize)> {
        let same = (0..self.all.len()).filter(|at| id.is_some() && self.all[*at].id.as_ref() == id);
        let at = same.max_by_key(|at| {
            let one = &self.all[*at];
            (one.replies + one.insteads == 0, one.event)
        })?;
        let (mut replies, mut insteads) = (self.all[at].replies, self.all[at].insteads);
        if self.all[at].may_be_unread() {
            let rest = self.unread_with_id().into_iter().filter(|one| !std::ptr::eq(*one, &self.all[at]));
            let rest: Vec<&Asked> = rest.collect();
            // If there are no longer enough for all, one of the answers without an id was to this.
            let many = (1..=self.nulls.len()).find(|many| matching(&rest, &self.nulls[..*many]) < *many);
            if let Some(many) = many {
                *(if self.nulls.remove(many - 1).is_reply { &mut replies } else { &mut insteads }) += 1;
            }
        }
        Some((&mut self.all[at], replies, insteads))
    }

    fn unread_with_id(&self) -> Vec<&Asked> {
        self.all.iter().filter(|one| one.may_be_unread() && one.id.is_some()).collect()
    }

    /// Whether an answer with the id null belongs to something that need not be read, and is dealt with.
    fn unread(&mut self, event: u64, is_reply: bool) -> bool {
        if let Some(one) = self.all.iter_mut().find(|one| one.may_be_unread() && one.id.is_none()) {
            *(if is_reply { &mut one.replies } else { &mut one.insteads }) += 1;
            return true;
        }
        self.nulls.push(Null { event, is_reply });
        let fits = matching(&self.unread_with_id(), &self.nulls) == self.nulls.len();
        if !fits {
            self.nulls.pop();
        }
        fits
    }
}

fn answered<'r>(
    rule: &'r rule::Correlation,
    asked: &mut Requests,
    id: Option<String>,
) -> Option<&'r Vec<String>> {
    if let Some((one, replies, insteads)) = asked.meant(id.as_ref()) {
        one.replies += 1;
        return if insteads > 0 { Some(&rule.both) } else { (replies > 0).then_some(&rule.twice) };
    }
    let asked = &mut asked.all;
    let nameless = asked.iter_mut().find(|one| one.is_open() && one.id.is_none());
    match (id.is_some(), nameless) {
        (false, Some(one)) => {
            one.replies += 1;
            None
        }
        (true, Some(one)) => {
            one.replies += 1;
            Some(&rule.invented)
        }
        (true, None) if !rule.foreign.is_empty() => Some(&rule.foreign),
        (named, None) => {
            let free = |one: &&mut Asked| {
                one.standing == Standing::Optional && one.id.is_none() && one.replies + one.insteads == 0
            };
            if let Some(one) = asked.iter_mut().find(free).filter(|_| !named) {
                one.replies += 1;
                return None;
            }
            match asked.iter_mut().find(|one| one.is_open()) {
                Some(_) if named => None,
                Some(one) => {
                    one.standing = Standing::Optional;
                    Some(&rule.echo)
                }
                None => Some(&rule.unsolicited),
            }
        }
    }
}

fn refused<'r>(
    rule: &'r rule::Correlation,
    asked: &mut Requests,
    id: Option<String>,
) -> Option<&'r Vec<String>> {
    if let Some((one, replies, _)) = asked.meant(id.as_ref()) {
        one.insteads += 1;
        return (replies > 0).then_some(&rule.both);
    }
    let oldest = asked.all.iter_mut().find(|one| id.is_none() && one.is_open());
    oldest.into_iter().for_each(|one| one.insteads += 1);
    None
}

/// What a message does about the server's requests, with the id that it names.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Asks,
    Answers,
    Resolves,
}

pub(super) fn server_requests(
    rule: &rule::ServerRequests,
    protocol: &Protocol,
    items: &Items,
    settled: bool,
) -> Vec<Finding> {
    let is_meant = |name: &String| rule.of.as_ref().is_none_or(|of| of.as_slice().contains(name));
    let kinds: Vec<_> = protocol.server_requests().iter().filter(|one| is_meant(&one.name)).collect();
    let act = |item: &Item| {
        let (act, id) = if item.dir == Direction::Send {
            (Act::Answers, kinds.iter().find_map(|kind| kind.answered_by(&item.body)))
        } else if let Some(kind) = kinds.iter().find(|kind| item.is(&kind.matcher)) {
            (Act::Asks, item.get(&kind.id))
        } else {
            let resolved = kinds.iter().filter_map(|kind| kind.resolved.as_ref()).find(|(on, _)| item.is(on));
            (Act::Resolves, resolved.and_then(|(_, at)| item.get(at)))
        };
        Some((act, id?.to_string()))
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some((own, id)) = act(item) else { continue };
        let same =
            items.before_on_conn(index).filter_map(|(_, other)| act(other)).filter(|(_, other)| *other == id);
        let same: Vec<Act> = same.map(|(act, _)| act).collect();
        // The newest comes first.
        let asked = same.iter().position(|act| *act == Act::Asks);
        let since = &same[..asked.unwrap_or(0)];
        let ids = match (own, asked) {
            (Act::Asks, Some(_)) if since.is_empty() => &rule.reused,
            (Act::Answers, None) => &rule.answered_unasked,
            (Act::Resolves, None) => {
                let mut others = items.before(index).filter_map(|(_, other)| act(other));
                if others.any(|(act, other)| act == Act::Asks && other == id) {
                    continue;
                }
                &rule.resolved_unasked
            }
            (Act::Answers, _) if since.contains(&own) => &rule.answered_twice,
            (Act::Resolves, _) if since.contains(&own) => &rule.resolved_twice,
            _ => continue,
        };
        found.push((Some(item.event), ids.clone()));
    }
    for (index, item) in items.iter().filter(|(_, item)| settled && items.is_open(item.conn)) {
        let Some((Act::Asks, id)) = act(item) else { continue };
        let after = items.after_on_conn(index).filter_map(&act).filter(|(_, other)| *other == id);
        let after: Vec<Act> = after.map(|(act, _)| act).collect();
        if after.contains(&Act::Answers) && !after.contains(&Act::Resolves) && !after.contains(&Act::Asks) {
            found.push((Some(item.event), rule.unresolved.clone()));
        }
    }
    found
}
