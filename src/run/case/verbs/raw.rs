//! The verbs below the messages: `frame` and `bytes`.

use crate::run::case::client::Ended;
use crate::run::case::interpreter::{Runner, Stop};
use crate::scenario::frame::{RawFrame, unhex};
use crate::scenario::model::Step;
use crate::trace::{Direction, End, Payload};

impl Runner<'_> {
    /// Writes a frame as the scenario describes it.
    pub(crate) async fn frame(&mut self, client: &str, step: &Step) -> Result<(), Stop> {
        let Some(raw) = &step.frame else { return Ok(()) };
        for _ in 0..step.count.unwrap_or(1) {
            let mut bytes = self.encoded(raw)?;
            if let Some(cut) = raw.cut {
                bytes.truncate(usize::try_from(cut).unwrap_or(usize::MAX));
            }
            let piece = raw.piece.map_or(usize::MAX, |piece| piece as usize);
            self.write(client, &bytes, piece).await?;
        }
        Ok(())
    }

    /// Writes the bytes of a `bytes` step.
    pub(crate) async fn bytes(&mut self, client: &str, step: &Step) -> Result<(), Stop> {
        let bytes = unhex(step.bytes.as_deref().unwrap_or_default())
            .map_err(|error| Stop::Error(format!("`bytes`: {error}")))?;
        for _ in 0..step.count.unwrap_or(1) {
            self.write(client, &bytes, usize::MAX).await?;
        }
        Ok(())
    }

    fn encoded(&mut self, raw: &RawFrame) -> Result<Vec<u8>, Stop> {
        raw.encode(&mut |value| match self.expand(value, None) {
            Ok(value) => Ok(value),
            Err(Stop::Error(error)) => Err(error),
            Err(_) => Err("its templates cannot be filled in".to_owned()),
        })
        .map_err(|error| Stop::Error(format!("`frame`: {error}")))
    }

    async fn write(&mut self, client: &str, bytes: &[u8], piece: usize) -> Result<(), Stop> {
        let deadline = self.deadline(None);
        let Some(connection) = &mut self.client(client)?.connection else {
            return Err(Stop::Error(format!("client `{client}` is not connected")));
        };
        let written = connection.write(bytes, piece, deadline).await;
        self.record(client, Direction::Send, Payload::Raw(bytes.into()));
        match written {
            Ok(completed) => {
                let closes = completed.iter().any(|payload| matches!(payload, Payload::Close { .. }));
                for payload in completed {
                    if matches!(payload, Payload::Text(_)) {
                        self.client(client)?.speaks();
                    }
                    self.record(client, Direction::Send, payload);
                }
                self.client(client)?.may_end |= closes;
            }
            // Whoever waits for an answer finds the connection ended and says so.
            Err(_) => {
                self.client(client)?.ended.get_or_insert(Ended::by(End::Reset));
            }
        }
        // A server may, or must, end what it cannot understand.
        let state = self.client(client)?;
        state.may_end |= state.may_be_cut();
        Ok(())
    }
}
