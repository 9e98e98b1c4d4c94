//! Sequence of messages: a sequence diagram with a row for each frame, which opens to its text.

use maud::{Markup, html};

use super::clip;
use super::lifelines::{Lifelines, NAME, percent};
use super::rows::{Busy, Row, indented};
use crate::cue::words;
use crate::results::event::{Call, FrameRecord, LogLine, ShownFrame, Way};

/// Characters of a frame that is opened, of a label, of a state and of what the model says.
const FRAME: usize = 5_000;
const LABEL: usize = 40;
const STATE: usize = 40;
const PLAYED: usize = 300;
/// States that one frame begins.
const STATES: usize = 4;
/// Characters of a frame without a type, on its arrow.
const UNTYPED: usize = 24;
/// Frames that show the failure which are open from the beginning.
const OPEN: usize = 3;

/// The heads of arrows, once on a page.
pub(super) fn definitions() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" {
            defs {
                @for id in ["head", "head-bad"] {
                    marker #(id) viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8"
                        orient="auto" markerUnits="userSpaceOnUse" { path d="M0 0L8 4L0 8z" {} }
                }
            }
        }
    }
}

/// The diagram. Empty where nothing was said.
pub(super) fn diagram(rows: &[Row<'_>]) -> Markup {
    let lifelines = Lifelines::new(rows);
    let mut marked = 0;
    let mut opens = |frame: &ShownFrame<'_>| {
        marked += usize::from(frame.marked);
        frame.marked && marked <= OPEN
    };
    let mut busy = false;
    html! {
        div class=(lifelines.class()) role="group" aria-label="Sequence diagram" {
            div.lanes {
                (lifelines.heads())
                @for row in rows {
                    @match row {
                        Row::Frame(frame, state) => {
                            (self::frame(frame, opens(frame), *state, &lifelines))
                            @let () = busy = state.after;
                        },
                        Row::Gap => div.row.gap { span.ms { "⋮" } p { (lifelines.behind(busy)) span { "frames left out" } } },
                        Row::Folded(frame) => div.row.gap { span.ms { "⋮" } p { (lifelines.behind(busy)) span { (frame.folded) " automatic messages" } } },
                        Row::Log(line) => (log(line, busy, &lifelines)),
                        Row::Asked(call) => (asked(call, busy, &lifelines)),
                        Row::Answered(call, at) => (answered(call, *at, busy, &lifelines)),
                    }
                }
            }
        }
    }
}

/// What stands on an arrow: the message's type, or what is known besides.
fn label(line: &FrameRecord) -> String {
    match &line.kind {
        Some(kind) => clip::name(kind, LABEL).into_owned(),
        None => {
            clip::name(&line.text, if line.way == Way::Connection { LABEL } else { UNTYPED }).into_owned()
        }
    }
}

/// What the model is told to do. What a server repeats of it is not told again.
fn instructions(line: &FrameRecord) -> Option<String> {
    (line.way == Way::ToServer).then(|| words::words(&line.text)).flatten()
}

fn frame(shown: &ShownFrame<'_>, open: bool, busy: Busy, lifelines: &Lifelines<'_>) -> Markup {
    let line = shown.line;
    let (client, server) = (lifelines.client(&line.client), lifelines.server());
    let (from, to, arrow, words) = match line.way {
        Way::ToServer => (client, server, "arrow", "to the server"),
        Way::ToClient => (server, client, "arrow", "from the server"),
        Way::Connection => (client, server, "arrow of-connection", "connection"),
    };
    let head = match (line.way, shown.marked) {
        (Way::Connection, _) => None,
        (_, false) => Some("url(#head)"),
        (_, true) => Some("url(#head-bad)"),
    };
    html! {
        details.frame.bad[shown.marked].quiet[line.way == Way::Connection] open[open] {
            summary.row {
                span.ms { @if shown.marked { b.mark aria-hidden="true" { "✗ " } } (format!("{:.1}", line.ms)) }
                svg.lane width="100%" height="34" aria-hidden="true" {
                    (lifelines.lines(busy.before))
                    line class=(arrow) x1=(percent(from)) x2=(percent(to)) y1="25" y2="25" marker-end=[head] {}
                    text.label x=(percent(f64::midpoint(from, to))) y="17" text-anchor="middle" { (label(line)) }
                }
                span.vh {
                    (clip::name(&line.client, NAME)) ", " (words) ": " (label(line))
                    @if shown.marked { ": this frame shows the failure" }
                }
                @if let Some(words) = instructions(line) {
                    span.cue { (lifelines.behind(busy.before)) span { b { "model" } " " (words) } }
                }
                @if !line.states.is_empty() {
                    span.states {
                        (lifelines.behind(busy.after))
                        span {
                            @for state in line.states.iter().take(STATES) {
                                b {
                                    span aria-hidden="true" { (sign(state)) " " }
                                    @if lifelines.are_several() { (clip::name(&line.client, NAME)) ": " }
                                    (clip::name(state, STATE))
                                }
                            }
                        }
                    }
                }
            }
            div.json {
                @if shown.marked { p.shows { "✗ this frame shows the failure" } }
                pre { (clip::clipped(&indented(&line.text).unwrap_or_else(|| line.text.clone()), FRAME)) }
                @if line.cut > 0 { p.muted { (line.cut) " more bytes were not kept." } }
            }
        }
    }
}

fn sign(state: &str) -> &'static str {
    match state {
        "turn begins" => "▶",
        "turn ends" => "■",
        _ => "◆",
    }
}

/// A line of the server's own log, beside its lifeline.
fn log(line: &LogLine, busy: bool, lifelines: &Lifelines<'_>) -> Markup {
    html! {
        div.row.log {
            span.ms { (format!("{:.1}", line.ms)) }
            div {
                (lifelines.behind(busy))
                p.err[line.error] { span.process { (clip::name(&line.process, NAME)) } " " (clip::name(&line.text, 400)) }
            }
        }
    }
}

/// A request of the server's to the model.
fn asked(call: &Call, busy: bool, lifelines: &Lifelines<'_>) -> Markup {
    let (from, to) = (lifelines.server(), lifelines.model());
    html! { (of_model(call.ms, from, to, &call.request, "the server asks the model", None, busy, lifelines)) }
}

/// What the model answered.
fn answered(call: &Call, at: f64, busy: bool, lifelines: &Lifelines<'_>) -> Markup {
    let (from, to) = (lifelines.model(), lifelines.server());
    let status = call.status.map_or_else(String::new, |status| format!("{status} "));
    let (label, played) = match call.cancelled {
        true => (format!("{status}cancelled"), None),
        false => (format!("{status}answer"), Some(call.played.as_str()).filter(|played| !played.is_empty())),
    };
    html! { (of_model(at, from, to, &label, "the model answers", played, busy, lifelines)) }
}

#[expect(clippy::too_many_arguments, reason = "both ways of one arrow")]
fn of_model(
    ms: f64,
    from: f64,
    to: f64,
    label: &str,
    who: &str,
    played: Option<&str>,
    busy: bool,
    lifelines: &Lifelines<'_>,
) -> Markup {
    html! {
        div.row.of-model {
            span.ms { (format!("{ms:.1}")) }
            svg.lane width="100%" height="34" aria-hidden="true" {
                (lifelines.lines(busy))
                line.arrow.to-model x1=(percent(from)) x2=(percent(to)) y1="25" y2="25" marker-end="url(#head)" {}
                text.label x=(percent(f64::midpoint(from, to))) y="17" text-anchor="middle" { (clip::name(label, LABEL)) }
            }
            span.vh { (who) ": " (clip::name(label, LABEL)) }
            @if let Some(played) = played {
                span.cue { (lifelines.behind(busy)) span { b { "model" } " " (clip::name(played, PLAYED)) } }
            }
        }
    }
}
