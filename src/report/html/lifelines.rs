//! The lifelines of a sequence diagram: the clients in the order in which they come, the server, and the model where it was asked.

use maud::{Markup, html};

use super::clip;
use super::rows::Row;
use crate::results::event::ShownFrame;

/// Lifelines of clients; more share the last.
const CLIENTS: usize = 8;
/// Characters of a client's name.
pub(super) const NAME: usize = 16;

/// Where they are.
pub(super) struct Lifelines<'c> {
    clients: Vec<&'c str>,
    has_model: bool,
}

impl<'c> Lifelines<'c> {
    pub fn new(rows: &[Row<'c>]) -> Self {
        let mut clients: Vec<&str> = Vec::new();
        for row in rows {
            if let Row::Frame(ShownFrame { line, .. }, _) | Row::Folded(ShownFrame { line, .. }) = row
                && !clients.contains(&line.client.as_str())
                && clients.len() < CLIENTS
            {
                clients.push(&line.client);
            }
        }
        let has_model = rows.iter().any(|row| matches!(row, Row::Asked(_) | Row::Answered(..)));
        Self { clients, has_model }
    }

    /// The classes of the diagram.
    pub fn class(&self) -> String {
        let model = if self.has_model { " with-model" } else { "" };
        format!("sequence of-{}{model}", self.clients.len())
    }

    fn count(&self) -> usize {
        self.clients.len() + 1 + usize::from(self.has_model)
    }

    /// The place of the lifeline with this number, in percent.
    fn x(&self, number: usize) -> f64 {
        (number as f64 + 0.5) / self.count() as f64 * 100.0
    }

    /// Whether there are several clients.
    pub fn are_several(&self) -> bool {
        self.clients.len() > 1
    }

    pub fn server(&self) -> f64 {
        self.x(self.clients.len())
    }

    pub fn model(&self) -> f64 {
        self.x(self.clients.len() + 1)
    }

    pub fn client(&self, name: &str) -> f64 {
        let last = self.clients.len().saturating_sub(1);
        self.x(self.clients.iter().position(|client| *client == name).unwrap_or(last))
    }

    /// As they go on. `busy`: a turn is under way, which the server's shows.
    pub fn lines(&self, busy: bool) -> Markup {
        html! {
            @for number in 0..self.count() {
                @let x = percent(self.x(number));
                line.life x1=(x) x2=(x) y1="0" y2="100%" {}
            }
            @if busy { rect.busy x=(percent(self.server())) y="0" width="8" height="100%" transform="translate(-4 0)" {} }
        }
    }

    /// As they go on behind a text.
    pub fn behind(&self, busy: bool) -> Markup {
        html! { svg.behind width="100%" height="100%" aria-hidden="true" { (self.lines(busy)) } }
    }

    pub fn heads(&self) -> Markup {
        let names: Vec<_> = self.clients.iter().map(|name| clip::name(name, NAME)).collect();
        let others = if self.has_model { "the server and the scripted model" } else { "and the server" };
        let label = format!("Clients: {}, {others}", names.join(", "));
        let parties = self.clients.iter().copied().chain(["server"]).chain(self.has_model.then_some("model"));
        html! {
            div.row.heads {
                span.ms { "ms" }
                svg.lane width="100%" height="34" role="img" aria-label=(label) {
                    @for (number, name) in parties.enumerate() {
                        @let x = percent(self.x(number));
                        line.life x1=(x) x2=(x) y1="26" y2="34" {}
                        svg x=(x) y="0" overflow="visible" {
                            rect.party.server[number == self.clients.len()].model[number > self.clients.len()]
                                x="-52" y="1" width="104" height="25" rx="6" {}
                            text.name x="0" y="18" text-anchor="middle" { (clip::name(name, NAME)) }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn percent(x: f64) -> String {
    format!("{x:.2}%")
}
