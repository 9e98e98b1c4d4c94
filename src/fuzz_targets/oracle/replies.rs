//! Requests and their replies.

use serde_json::Value;

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
    let ids = Keys::ids(&rule.id, c, items, |item| item.is(&request));
    let asks = |item: &Item| item.is(&request) && rule.asked.get(&item.body).is_some();
    let mut found = Vec::new();
    for (index, item) in items.iter().filter(|(_, item)| item.is(&reply) && !asks(item)) {
        let Some(id) = ids.of(item) else { continue };
        let mut same = items
            .before_on_conn(index)
            .map(|(_, other)| other)
            .filter(|other| ids.of(other).as_ref() == Some(&id));
        let newest = same.find(|other| asks(other) || other.is(&reply));
        if let Some(asked) = newest.filter(|other| asks(other))
            && rule.asked.get(&asked.body) != rule.told.get(&item.body)
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
    protocol.type_of(&item.body).is_some()
        && id.is_some_and(|id| id.is_string() || id.is_i64() || id.is_u64())
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
    let ids = Keys::ids(&rule.id, c, items, asks);
    let nulls = Keys::nulls(&rule.id, c, items, asks);
    let id = |item: &Item| ids.of(item);
    // A rule of which each pattern names types sees nothing else.
    let sees_unknown = [Some(&request), Some(&reply), instead.as_ref(), optional.as_ref()]
        .into_iter()
        .flatten()
        .any(|one| one.messages().is_none() && one.direction() == Direction::Send);
    let mut found = Vec::new();
    for conn in 0..items.ended.len() {
        let mut asked: Vec<Asked> = Vec::new();
        for item in items.all.iter().filter(|item| item.conn == conn) {
            let is_answer = item.is(&reply) || item.is_any(instead.as_ref());
            let broken = if is_answer && nulls.of(item).is_some() && unread(rule, &mut asked, item.is(&reply))
            {
                None
            } else if item.is(&reply) {
                answered(rule, &mut asked, id(item))
            } else if item.is_any(instead.as_ref()) {
                refused(rule, &mut asked, id(item))
            } else {
                let is_typed = c.0.type_of(&item.body).is_some();
                let standing = if item.is(&request) {
                    Some(Standing::Due)
                } else if item.is_any(optional.as_ref()) {
                    Some(Standing::Optional)
                } else {
                    let answers = c.0.extension.replies.as_ref().is_some_and(|replies| {
                        [&replies.result, &replies.error].iter().any(|part| part.get(&item.body).is_some())
                    });
                    let is_unread = sees_unknown
                        && item.dir == Direction::Send
                        && item.message.is_none()
                        && !is_typed
                        && !answers;
                    is_unread.then_some(Standing::Unread)
                };
                if let Some(standing) = standing {
                    let (event, id) = (item.event, id(item));
                    let readable = is_readable(c.0, item, id.as_ref());
                    let id = id.filter(|_| standing != Standing::Unread);
                    asked.push(Asked { event, id, standing, readable, replies: 0, insteads: 0 });
                }
                None
            };
            found.extend(broken.map(|ids| (Some(item.event), ids.clone())));
        }
        if settled && items.is_open(conn) {
            let open = asked.iter().filter(|one| one.id.is_some() && one.is_open());
            found.extend(open.map(|one| (Some(one.event), rule.missing.clone())));
        }
    }
    found
}

/// The request that an answer with this id means: of those with the id the newest open one, or else the newest.
fn meant<'a>(asked: &'a mut [Asked], id: Option<&String>) -> Option<&'a mut Asked> {
    let same = asked.iter_mut().filter(|one| one.id.is_some() && one.id.as_ref() == id);
    same.max_by_key(|one| (one.replies + one.insteads == 0, one.event))
}

/// Whether an answer with the id null belongs to nothing that could be read, and is dealt with.
fn unread(rule: &rule::Correlation, asked: &mut [Asked], is_reply: bool) -> bool {
    let unread = asked.iter_mut().find(|one| one.replies + one.insteads == 0 && !one.readable);
    if let Some(one) = unread {
        *(if is_reply { &mut one.replies } else { &mut one.insteads }) += 1;
        return true;
    }
    rule.echo.is_empty() && asked.iter().any(Asked::is_open)
}

fn answered<'r>(
    rule: &'r rule::Correlation,
    asked: &mut [Asked],
    id: Option<String>,
) -> Option<&'r Vec<String>> {
    if let Some(one) = meant(asked, id.as_ref()) {
        one.replies += 1;
        return if one.insteads > 0 { Some(&rule.both) } else { (one.replies > 1).then_some(&rule.twice) };
    }
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
                    one.replies += 1;
                    Some(&rule.echo)
                }
                None => Some(&rule.unsolicited),
            }
        }
    }
}

fn refused<'r>(
    rule: &'r rule::Correlation,
    asked: &mut [Asked],
    id: Option<String>,
) -> Option<&'r Vec<String>> {
    if let Some(one) = meant(asked, id.as_ref()) {
        one.insteads += 1;
        return (one.replies > 0).then_some(&rule.both);
    }
    let oldest = asked.iter_mut().find(|one| id.is_none() && one.is_open());
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
            (Act::Resolves, None) => &rule.resolved_unasked,
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
