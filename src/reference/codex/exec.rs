//! command/exec: commands without a thread.

use std::sync::{Arc, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Core;
use super::connection::{Answer, Answered, Peer};
use super::exec_request::{ExecRequest, dimensions};
use super::faults::Defect;
use super::rpc::{Params, Refusal, invalid, refuse, response};
use super::shell::{self, Program, Stream};
use super::state::Process;
use super::styles::Style;
use crate::reference::engine::{Cancel, Canceller};

/// What a command that was ended, or ran too long, exits with.
const ENDED: i64 = 143;
const TOO_LONG: i64 = 124;
/// Processes of all connections.
const MOST: usize = 10_000;

/// One stream of a command, as far as the cap lets it.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    count: usize,
    full: bool,
}

/// What a command prints, and what becomes of it.
struct Printer {
    core: Arc<Core>,
    client: u64,
    process: String,
    /// None: it is kept for the response.
    streamed: bool,
    terminal: bool,
    cap: Option<usize>,
    out: Kept,
    err: Kept,
    defect: Option<Defect>,
    /// Deltas that are sent after the response, under a defect.
    late: Vec<Value>,
}

impl Printer {
    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let stream = if self.terminal && self.defect != Some(Defect::TerminalsHaveStderr) {
            Stream::Out
        } else {
            stream
        };
        let bytes = match self.terminal {
            true => String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes(),
            false => bytes.to_vec(),
        };
        let shared = self.out.count + self.err.count;
        let kept = match stream {
            _ if self.defect == Some(Defect::StreamsAreMixed) => &mut self.out,
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        if kept.full {
            return;
        }
        let used = if self.defect == Some(Defect::CapIsShared) { shared } else { kept.count };
        let room = self.cap.map_or(usize::MAX, |cap| cap.saturating_sub(used));
        let bytes = &bytes[..bytes.len().min(room)];
        kept.count += bytes.len();
        kept.full = self.cap.is_some_and(|cap| used + bytes.len() >= cap);
        if !self.streamed || self.defect == Some(Defect::StreamedOutputIsRepeated) {
            kept.bytes.extend_from_slice(bytes);
        }
        if !self.streamed {
            return;
        }
        let name = match (stream, self.defect) {
            (Stream::Err, defect) if defect != Some(Defect::DeltasAreAllStdout) => "stderr",
            _ => "stdout",
        };
        let full = kept.full && self.defect != Some(Defect::CapIsNotTold);
        let text = STANDARD.encode(bytes);
        let params =
            json!({ "processId": self.process, "stream": name, "deltaBase64": text, "capReached": full });
        let state = self.core.lock();
        match self.defect {
            Some(Defect::ExecDeltasComeLate) => return self.late.push(params),
            Some(Defect::ExecDeltasGoToAll) => {
                let all = state.clients.keys();
                return all.for_each(|to| state.notify(*to, "command/exec/outputDelta", &params));
            }
            _ => {}
        }
        state.notify(self.client, "command/exec/outputDelta", &params);
    }
}

impl Peer<'_> {
    pub fn exec(&self, id: &Value, params: &Params<'_>) -> Answered {
        let defect = self.behaviour.striking();
        let mut wish = ExecRequest::read(params, defect)?;
        let canceller = Arc::new(Canceller::default());
        let cancelled = canceller.listen();
        let key = {
            let mut state = self.core.lock();
            state.counts.processes += 1;
            let key = wish.process.clone().unwrap_or_else(|| format!("#{}", state.counts.processes));
            if state.processes.contains_key(&(self.client, key.clone()))
                && defect != Some(Defect::ProcessIdsRepeat)
            {
                return Err(refuse(format!("the processId is in use: {key}")));
            }
            if state.processes.len() >= MOST {
                return Err(refuse("there are too many processes"));
            }
            let mut input = None;
            if wish.stdin {
                let (sender, receiver) = mpsc::unbounded_channel();
                (input, wish.job.input) = (Some(sender), Some(receiver));
            }
            let process = Process { canceller, input, size: wish.job.terminal.clone() };
            state.processes.insert((self.client, key.clone()), process);
            if defect == Some(Defect::ExecStartsAThread) {
                self.start_unasked(&mut state, &wish.job.cwd);
            }
            key
        };
        let printer = Printer {
            core: Arc::clone(self.core),
            client: self.client,
            process: key.clone(),
            streamed: wish.stream,
            terminal: wish.tty && defect != Some(Defect::NoTerminals),
            cap: wish.cap,
            out: Kept::default(),
            err: Kept::default(),
            defect,
            late: Vec::new(),
        };
        if defect == Some(Defect::NoTerminals) {
            wish.job.terminal = None;
        }
        let ended = run(wish, printer, cancelled, (key, id.clone()));
        self.core.spawn(ended);
        Ok(Answer::Elsewhere)
    }

    /// A process of this connection.
    fn process<T>(
        &self,
        id: &str,
        what: impl FnOnce(&mut Process) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut state = self.core.lock();
        let own = (self.client, id.to_owned());
        let others = self.has(Defect::ProcessesAreShared);
        let found = match state.processes.contains_key(&own) {
            true => Some(own),
            false => state.processes.keys().find(|(_, key)| others && key == id).cloned(),
        };
        let process = found.and_then(|key| state.processes.get_mut(&key));
        what(process.ok_or_else(|| refuse(format!("no process is running: {id}")))?)
    }

    pub fn write_input(&self, params: &Params<'_>) -> Answered {
        let id = params.text("processId")?;
        let close = params.flag("closeStdin")?.unwrap_or(false);
        let bytes = params.maybe_text("deltaBase64")?.map(|text| STANDARD.decode(text)).transpose();
        let bytes = bytes.map_err(|error| invalid(&format!("deltaBase64: {error}")))?;
        let nothing = bytes.is_none() && params.get("closeStdin").is_none();
        let defect = self.behaviour.striking();
        let written = self.process(id, |process| {
            if nothing
                && !(defect == Some(Defect::WritesOfNothing) || self.behaviour.style(Style::WritesOfNothing))
            {
                return Err(invalid("neither deltaBase64 nor closeStdin"));
            }
            let Some(input) = &process.input else { return Err(refuse("stdin is closed")) };
            let bytes = match defect {
                Some(Defect::InputIsNotDecoded) => params.maybe_text("deltaBase64")?.map(|text| text.into()),
                _ => bytes,
            };
            if let Some(bytes) = bytes {
                // An error: it has stopped reading.
                let _ = input.send(bytes);
            }
            if close {
                process.input = None;
            }
            Ok(())
        });
        match written {
            Err(_) if defect == Some(Defect::EndedProcessesTakeAll) => Ok(Answer::Now(json!({}))),
            written => written.map(|()| Answer::Now(json!({}))),
        }
    }

    pub fn resize(&self, params: &Params<'_>) -> Answered {
        let id = params.text("processId")?;
        let size = params.object("size")?.ok_or_else(|| invalid("missing field `size`"))?;
        let wanted = dimensions(&Params(size))?;
        let defect = self.behaviour.striking();
        let resized = self.process(id, |process| match &process.size {
            Some(size) if defect == Some(Defect::ResizeDoesNothing) => {
                drop(size.lock());
                Ok(())
            }
            Some(size) => {
                *size.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
                Ok(())
            }
            None if defect == Some(Defect::AnythingIsResized) => Ok(()),
            None => Err(refuse("the process has no terminal")),
        });
        match resized {
            Err(_) if defect == Some(Defect::EndedProcessesTakeAll) => Ok(Answer::Now(json!({}))),
            resized => resized.map(|()| Answer::Now(json!({}))),
        }
    }

    pub fn terminate(&self, request: &Value, params: &Params<'_>) -> Answered {
        let id = params.text("processId")?;
        let defect = self.behaviour.striking();
        let ended = self.process(id, |process| Ok(Arc::clone(&process.canceller)));
        match (ended, defect) {
            (Err(_), Some(Defect::EndedProcessesTakeAll)) => Ok(Answer::Now(json!({}))),
            (Err(refusal), _) => Err(refusal),
            (Ok(canceller), _) => {
                let mut state = self.core.lock();
                state.send(self.client, response(request, &Ok(json!({}))));
                match defect {
                    Some(Defect::TerminateDoesNothing) => {}
                    Some(Defect::TerminateEndsAll) => {
                        let mine =
                            state.processes.iter_mut().filter(|((client, _), _)| *client == self.client);
                        mine.for_each(|(_, process)| process.canceller.cancel());
                    }
                    _ => canceller.cancel(),
                }
                Ok(Answer::Elsewhere)
            }
        }
    }
}

/// Runs a command to its end, and answers its request.
async fn run(mut wish: ExecRequest, mut printer: Printer, mut cancelled: Cancel, (key, id): (String, Value)) {
    let (core, client, defect) = (Arc::clone(&printer.core), printer.client, printer.defect);
    let program = Program::Words(std::mem::take(&mut wish.program));
    let timeout = wish.timeout;
    let buffered = !wish.stream;
    let mut job = wish.job;
    let mut output = |stream: Stream, bytes: &[u8]| printer.print(stream, bytes);
    let deaf = defect == Some(Defect::BufferedCommandsAreNotEnded) && buffered;
    let code = {
        let run = shell::run(&core, &mut job, &program, &mut output);
        let limit = async {
            match timeout {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            code = run => code,
            () = cancelled.wait(), if !deaf => ENDED,
            () = limit => TOO_LONG,
        }
    };
    let code = match defect {
        Some(Defect::TerminatedSucceeds) if code == ENDED => 0,
        _ => code,
    };
    let mut state = core.lock();
    state.processes.remove(&(client, key));
    let text = |kept: &Kept| String::from_utf8_lossy(&kept.bytes).into_owned();
    let mut result = json!({ "exitCode": code, "stdout": text(&printer.out), "stderr": text(&printer.err) });
    if defect == Some(Defect::ExecHasNoStderr) {
        result.as_object_mut().map(|result| result.remove("stderr"));
    }
    state.send(client, response(&id, &Ok(result)));
    for params in std::mem::take(&mut printer.late) {
        state.notify(client, "command/exec/outputDelta", &params);
    }
}
