//! What each kind of monitor refers to.

use super::{
    Absence, Agreement, Bracket, Cadence, Concatenation, Constant, Correlation, Cued, Dialogue, Echo,
    Existence, Fact, Fold, Holds, Increasing, Increments, Known, Precedence, Projection, Proportion,
    Relation, Replay, Response, Rule, Series, ServerRequests, States, Unique,
};
use crate::protocol::refs::{Refer, Refs, refer};

refer!(Increasing { parts: [message, restarts, key], ids: [order, repeat, written], other: [at] });
refer!(Agreement { parts: [], ids: [content, complete], other: [] });
refer!(Replay {
    parts: [resume, refused, resets, instead, joined],
    ids: [floor, complete, content, current],
    other: []
});
refer!(Correlation {
    parts: [request, optional, reply, instead, id],
    ids: [echo, foreign, twice, both, unsolicited, invented, batched, missing],
    other: []
});
refer!(Dialogue {
    parts: [history, question, piece, over, unsure, request],
    ids: [decides],
    other: [text, asked, answered]
});
refer!(States {
    parts: [message, known, key],
    ids: [transition, start, terminal, overlap],
    other: [at, transitions, initial]
});
refer!(Precedence { parts: [first, then, key, known], ids: [decides], other: [scope] });
refer!(Known { parts: [by], ids: [], other: [at, named] });
refer!(Absence {
    parts: [of, after, until, owed, unless, answered, key],
    ids: [decides],
    other: [scope, until_anywhere]
});
refer!(Bracket {
    parts: [open, close, inside, joined, middle, exempt],
    ids: [before, after],
    other: [counted]
});
refer!(Response { parts: [first, then, unless, before, key], ids: [decides], other: [within, lasting_ms] });
refer!(Existence {
    parts: [of, from, to, key, with, without, unless],
    ids: [decides],
    other: [within, min, max]
});
refer!(Unique { parts: [message], ids: [decides], other: [at, identity, within] });
refer!(Constant { parts: [values, restarts, key], ids: [decides], other: [scope] });
refer!(Cadence { parts: [message], ids: [decides], other: [period, factor] });
refer!(Holds { parts: [message, told, key], ids: [decides], other: [schema, at, json] });
refer!(Relation { parts: [message], ids: [decides], other: [left, is, right] });
refer!(Proportion {
    parts: [message],
    ids: [decides],
    other: [value, part, minus, whole, factor, tolerance]
});
refer!(Projection { parts: [message, asked, id, facts], ids: [], other: [cursor] });
refer!(Fact { parts: [when, fold], ids: [decides], other: [at] });
refer!(Cued {
    parts: [prompt, piece, key, over, unsure],
    ids: [decides],
    other: [anywhere, late, each_response]
});
refer!(Concatenation { parts: [piece, whole, key], ids: [decides], other: [loose] });
refer!(Echo { parts: [request, reply, id], ids: [decides], other: [asked, told] });
refer!(Series { parts: [message, key], ids: [complete, json], other: [part, total, text, same] });
refer!(ServerRequests {
    parts: [],
    ids: [reused, resolved_twice, resolved_unasked, unresolved, answered_twice, answered_unasked],
    other: [of]
});
refer!(Increments { parts: [message, key], ids: [decides], other: [at] });

impl Refer for Fold {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        match self {
            Self::Newest {} => {}
            Self::Latest { set, clear } => {
                refs.under("latest/set", set);
                refs.under("latest/clear", clear);
            }
            Self::Open { add, remove, clear, item: _ } => {
                refs.under("open/add", add);
                refs.under("open/remove", remove);
                refs.under("open/clear", clear);
            }
            Self::Items { of, drop: _, join: _ } => refs.under("items/of", of),
            Self::Count { of, by: _ } => refs.under("count/of", of),
        }
    }
}

/// The kinds of rule, and what each is called in a file.
macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        impl Refer for Rule {
            fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
                match self {
                    $(Self::$kind(rule) => refs.under($name, rule),)*
                }
            }
        }
    };
}

kinds! {
    Increasing "increasing",
    Agreement "agreement",
    Replay "replay",
    Correlation "correlation",
    States "states",
    Precedence "precedence",
    Absence "absence",
    Bracket "bracket",
    Response "response",
    Existence "existence",
    Unique "unique",
    Constant "constant",
    Holds "holds",
    Relation "relation",
    Proportion "proportion",
    Projection "projection",
    Cadence "cadence",
    Concatenation "concatenation",
    Cued "cued",
    Increments "increments",
    Echo "echo",
    Series "series",
    Dialogue "dialogue",
    ServerRequests "server-requests",
}
