//! The verbs below the messages: `frame` and `bytes`.

use std::time::Instant;

use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::{WriteBytes, WriteFrame};
use crate::scenario::frame::RawFrame;
use crate::trace::Payload;

impl Interpreter<'_> {
    /// Writes a frame as the scenario describes it.
    pub(crate) async fn frame(&mut self, verb: &WriteFrame, cx: &StepScope<'_>) -> Result<(), Abort> {
        let raw = &verb.frame;
        for _ in 0..verb.count {
            let mut bytes = self.encoded(raw)?;
            if let Some(cut) = raw.cut {
                bytes.truncate(usize::try_from(cut).unwrap_or(usize::MAX));
            }
            let piece = raw.piece.map_or(usize::MAX, |piece| piece as usize);
            self.write(cx.client, &bytes, piece).await?;
        }
        Ok(())
    }

    /// Writes the bytes of a `bytes` step.
    pub(crate) async fn bytes(&mut self, verb: &WriteBytes, cx: &StepScope<'_>) -> Result<(), Abort> {
        for _ in 0..verb.count {
            self.write(cx.client, &verb.bytes, usize::MAX).await?;
        }
        Ok(())
    }

    fn encoded(&mut self, raw: &RawFrame) -> Result<Vec<u8>, Abort> {
        raw.encode(&mut |value| match self.expand(value, None) {
            Ok(value) => Ok(value),
            Err(Abort::Error(error)) => Err(error),
            Err(_) => Err("its templates cannot be expanded".to_owned()),
        })
        .map_err(|error| Abort::Error(format!("`frame`: {error}")))
    }

    async fn write(&mut self, client: &str, bytes: &[u8], piece: usize) -> Result<(), Abort> {
        let deadline = self.deadline(None);
        let Some(connection) = self.client(client)?.link() else {
            return Err(Abort::Error(format!("client `{client}` is not connected")));
        };
        let began = Instant::now();
        let written = connection.write(bytes, piece, deadline).await;
        self.record_since(began, client, Payload::Raw(bytes.into()));
        match written {
            Ok(completed) => {
                let closes = completed.iter().any(|payload| matches!(payload, Payload::Close { .. }));
                for payload in completed {
                    if matches!(payload, Payload::Text(_)) {
                        let state = self.client(client)?;
                        state.begin_request();
                        state.begin_exchange();
                    }
                    self.record_since(began, client, payload);
                }
                if closes {
                    self.client(client)?.note_closing();
                }
            }
            // Whoever waits for an answer finds the connection ended and says so.
            Err(_) => self.client(client)?.note_broken(),
        }
        // A server may, or must, end what it cannot understand.
        let state = self.client(client)?;
        if state.may_be_cut() {
            state.allow_end();
        }
        Ok(())
    }
}
