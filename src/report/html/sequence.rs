//! Who said what when: a sequence diagram with a row for each frame, which opens to its text.

use maud::{Markup, html};

use super::clip;
use super::rows::{Row, indented};
use crate::report::cue;
use crate::results::event::{FrameRecord, LogLine, ShownFrame, Way};

/// Lifelines of clients; more share the last.
const CLIENTS: usize = 8;
/// Characters of a frame that is opened, of a label and of a client's name.
const FRAME: usize = 5_000;
const LABEL: usize = 40;
const NAME: usize = 16;
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

/// The lifelines: the clients in the order in which they come, and the server.
struct Lifelines<'c>(Vec<&'c str>);

impl<'c> Lifelines<'c> {
    fn new(rows: &[Row<'c>]) -> Self {
        let mut clients: Vec<&str> = Vec::new();
        for row in rows {
            if let Row::Frame(ShownFrame { line, .. }) = row
                && !clients.contains(&line.client.as_str())
                && clients.len() < CLIENTS
            {
                clients.push(&line.client);
            }
        }
        Self(clients)
    }

    /// The place of the lifeline with this number, in percent.
    fn x(&self, number: usize) -> f64 {
        (number as f64 + 0.5) / (self.0.len() as f64 + 1.0) * 100.0
    }

    fn server(&self) -> f64 {
        self.x(self.0.len())
    }

    fn client(&self, name: &str) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.x(self.0.iter().position(|client| *client == name).unwrap_or(last))
    }

    fn lines(&self) -> Markup {
        html! {
            @for number in 0..=self.0.len() {
                @let x = percent(self.x(number));
                line.life x1=(x) x2=(x) y1="0" y2="100%" {}
            }
        }
    }

    /// As they go on behind a text.
    fn behind(&self) -> Markup {
        html! { svg.behind width="100%" height="100%" aria-hidden="true" { (self.lines()) } }
    }

    fn heads(&self) -> Markup {
        let names: Vec<_> = self.0.iter().map(|name| clip::name(name, NAME)).collect();
        let names = names.join(", ");
        html! {
            div.row.heads {
                span.ms { "ms" }
                svg.lane width="100%" height="34" role="img" aria-label={ "Clients: " (names) ", and the server" } {
                    @for (number, name) in self.0.iter().chain(&["server"]).enumerate() {
                        @let x = percent(self.x(number));
                        line.life x1=(x) x2=(x) y1="26" y2="34" {}
                        svg x=(x) y="0" overflow="visible" {
                            rect.party.server[number == self.0.len()] x="-52" y="1" width="104" height="25" rx="6" {}
                            text.name x="0" y="18" text-anchor="middle" { (clip::name(name, NAME)) }
                        }
                    }
                }
            }
        }
    }
}

fn percent(x: f64) -> String {
    format!("{x:.2}%")
}

/// The diagram. Empty where nothing was said.
pub(super) fn diagram(rows: &[Row<'_>]) -> Markup {
    let lifelines = Lifelines::new(rows);
    let mut marked = 0;
    let mut opens = |frame: &ShownFrame<'_>| {
        marked += usize::from(frame.marked);
        frame.marked && marked <= OPEN
    };
    html! {
        div class={ "sequence of-" (lifelines.0.len()) } role="group" aria-label="Sequence diagram" {
            div.lanes {
                (lifelines.heads())
                @for row in rows {
                    @match row {
                        Row::Frame(frame) => (self::frame(frame, opens(frame), &lifelines)),
                        Row::Gap => div.row.gap { span.ms { "⋮" } p { (lifelines.behind()) span { "frames left out" } } },
                        Row::Log(line) => (log(line, &lifelines)),
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
        None => clip::name(&line.text, LABEL).into_owned(),
    }
}

/// What the model is told to do. What a server repeats of it is not told again.
fn told(line: &FrameRecord) -> Option<String> {
    (line.way == Way::ToServer).then(|| cue::words(&line.text)).flatten()
}

fn frame(shown: &ShownFrame<'_>, open: bool, lifelines: &Lifelines<'_>) -> Markup {
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
                    (lifelines.lines())
                    line class=(arrow) x1=(percent(from)) x2=(percent(to)) y1="25" y2="25" marker-end=[head] {}
                    text.label x=(percent(f64::midpoint(from, to))) y="17" text-anchor="middle" { (label(line)) }
                }
                span.vh {
                    (clip::name(&line.client, NAME)) ", " (words) ": " (label(line))
                    @if shown.marked { ": this frame shows the failure" }
                }
                @if let Some(words) = told(line) {
                    span.cue { (lifelines.behind()) span { b { "model" } " " (words) } }
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

/// A line of the server's own log, beside its lifeline.
fn log(line: &LogLine, lifelines: &Lifelines<'_>) -> Markup {
    html! {
        div.row.log {
            span.ms { (format!("{:.1}", line.ms)) }
            div {
                (lifelines.behind())
                p.err[line.error] { span.process { (clip::name(&line.process, NAME)) } " " (clip::name(&line.text, 400)) }
            }
        }
    }
}
