//! Which API is spoken by which file.

use super::api::{Api, Dialect};
use super::request::Ask;
use super::{chat, completions, messages, responses};

impl Api {
    /// How this API says what a cue has the model say.
    pub fn dialect(self, ask: &Ask) -> Box<dyn Dialect> {
        match self {
            Self::Chat => Box::new(chat::Chat::new(&ask.body)),
            Self::Completions => Box::new(completions::Completions::new(&ask.body)),
            Self::Responses => Box::new(responses::Responses::new(&ask.body)),
            Self::Messages => Box::new(messages::Messages::new(&ask.body)),
        }
    }
}
