//! command/exec: commands without a thread.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::connection::{Answer, Answered, Peer};
use super::exec_request::{CAP, Cap, ExecRequest, dimensions};
use super::faults::Defect;
use super::rpc::{Params, Refusal, invalid, refuse, response};
use super::shell::{self, Program, Stream};
use super::state::Process;
use super::styles::Style;
use super::{Behaviour, Core};
use crate::reference::engine::{Cancel, Canceller, Happening};

/// What a command that was ended, or ran too long, exits with.
const ENDED: i64 = 143;
const TOO_LONG: i64 = 124;
/// When a command that has not ended is answered, under a defect.
const EARLY: Duration = Duration::from_millis(100);
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
    cap: Cap,
    out: Kept,
    err: Kept,
    behaviour: Behaviour,
    /// Deltas that are sent after the response, under a defect.
    late: Vec<Value>,
}

impl Printer {
    fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    /// How much is kept of a stream that comes to so many bytes.
    fn cap(&self, count: usize) -> Option<usize> {
        match self.cap {
            Cap::Given(cap) if count >= cap && self.has(Defect::CapsAreIgnored) => Some(CAP),
            Cap::Given(cap) => Some(cap),
            Cap::All if count >= CAP && self.has(Defect::CapIsAlwaysThere) => Some(CAP),
            Cap::All => None,
            Cap::Usual if count >= CAP && self.has(Defect::NoDefaultCap) => None,
            Cap::Usual => Some(CAP),
        }
    }

    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let is_err = |stream| stream == Stream::Err;
        let stream = if self.terminal && is_err(stream) && !self.has(Defect::TerminalsHaveStderr) {
            Stream::Out
        } else {
            stream
        };
        let bytes = match self.terminal {
            true => String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes(),
            false => bytes.to_vec(),
        };
        let shared = self.out.count + self.err.count;
        let apart = is_err(stream) && (self.streamed || !self.has(Defect::StreamsAreMixed));
        let (count, is_full) = {
            let kept = if apart { &self.err } else { &self.out };
            (kept.count, kept.full)
        };
        if is_full {
            return;
        }
        let would_fill = |used: usize| match self.cap {
            Cap::Given(cap) => used + bytes.len() >= cap,
            Cap::Usual | Cap::All => false,
        };
        let used = if shared != count && would_fill(shared) && self.has(Defect::CapIsShared) {
            shared
        } else {
            count
        };
        let cap = self.cap(used + bytes.len());
        let room = cap.map_or(usize::MAX, |cap| cap.saturating_sub(used));
        let bytes = &bytes[..bytes.len().min(room)];
        let full = cap.is_some_and(|cap| used + bytes.len() >= cap);
        let repeated = self.streamed
            && !bytes.is_empty()
            && (self.has(Defect::StreamedOutputIsRepeated)
                || is_err(stream) && self.has(Defect::StreamedErrorsAreRepeated));
        let streamed = self.streamed;
        let kept = if apart { &mut self.err } else { &mut self.out };
        kept.count += bytes.len();
        kept.full = full;
        if !streamed || repeated {
            kept.bytes.extend_from_slice(bytes);
        }
        if !streamed {
            return;
        }
        let name = if is_err(stream) && !self.has(Defect::DeltasAreAllStdout) { "stderr" } else { "stdout" };
        let full = full && !self.has(Defect::CapIsNotTold);
        let mut text = STANDARD.encode(bytes);
        if std::str::from_utf8(bytes).is_err() && self.has(Defect::StreamedBytesAreText) {
            text = STANDARD.encode(String::from_utf8_lossy(bytes).as_bytes());
        }
        let mut params =
            json!({ "processId": self.process, "stream": name, "deltaBase64": text, "capReached": full });
        if self.has(Defect::ExecDeltasComeLate) || is_err(stream) && self.has(Defect::ErrorDeltasComeLate) {
            return self.late.push(params);
        }
        let state = self.core.lock();
        let mut own = state.processes.keys().filter(|(client, _)| *client == self.client);
        if let Some((_, other)) = own.find(|(_, key)| *key != self.process)
            && self.has(Defect::DeltasNameAnotherProcess)
        {
            params["processId"] = json!(other);
        }
        if state.clients.len() > 1 && self.has(Defect::ExecDeltasGoToAll) {
            let all = state.clients.keys();
            return all.for_each(|to| state.notify(*to, "command/exec/outputDelta", &params));
        }
        state.notify(self.client, "command/exec/outputDelta", &params);
    }
}

impl Peer<'_> {
    pub fn exec(&self, id: &Value, params: &Params<'_>) -> Answered {
        let mut wish = ExecRequest::read(params, &self.behaviour)?;
        let canceller = Arc::new(Canceller::default());
        let cancelled = canceller.listen();
        let key = {
            let mut state = self.core.lock();
            state.counts.processes += 1;
            let key = wish.process.clone().unwrap_or_else(|| format!("#{}", state.counts.processes));
            if state.processes.contains_key(&(self.client, key.clone()))
                && !self.has(Defect::ProcessIdsRepeat)
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
            if self.has(Defect::ExecStartsAThread) {
                self.start_unasked(&mut state, &wish.job.cwd);
            }
            key
        };
        let bare = wish.tty && self.has(Defect::NoTerminals);
        let printer = Printer {
            core: Arc::clone(self.core),
            client: self.client,
            process: key.clone(),
            streamed: wish.stream,
            terminal: wish.tty && !bare,
            cap: wish.cap,
            out: Kept::default(),
            err: Kept::default(),
            behaviour: self.behaviour.clone(),
            late: Vec::new(),
        };
        if bare {
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
        let found = match state.processes.contains_key(&own) {
            true => Some(own),
            false => {
                let other = state.processes.keys().find(|(_, key)| key == id).cloned();
                other.filter(|_| self.has(Defect::ProcessesAreShared))
            }
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
        let written = self.process(id, |process| {
            if nothing && !(self.behaviour.style(Style::WritesOfNothing) || self.has(Defect::WritesOfNothing))
            {
                return Err(invalid("neither deltaBase64 nor closeStdin"));
            }
            let Some(input) = &process.input else { return Err(refuse("stdin is closed")) };
            let bytes = match params.maybe_text("deltaBase64")? {
                Some(text) if self.has(Defect::InputIsNotDecoded) => Some(text.into()),
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
            Err(_) if self.has(Defect::EndedProcessesTakeAll) => Ok(Answer::Now(json!({}))),
            written => written.map(|()| Answer::Now(json!({}))),
        }
    }

    pub fn resize(&self, params: &Params<'_>) -> Answered {
        let id = params.text("processId")?;
        let size = params.object("size")?.ok_or_else(|| invalid("missing field `size`"))?;
        let wanted = dimensions(&Params(size))?;
        let resized = self.process(id, |process| match &process.size {
            Some(size) => {
                let mut size = size.lock().unwrap_or_else(PoisonError::into_inner);
                if *size != wanted && !self.has(Defect::ResizeDoesNothing) {
                    *size = wanted;
                }
                Ok(())
            }
            None if self.has(Defect::AnythingIsResized) => Ok(()),
            None => Err(refuse("the process has no terminal")),
        });
        match resized {
            Err(_) if self.has(Defect::EndedProcessesTakeAll) => Ok(Answer::Now(json!({}))),
            resized => resized.map(|()| Answer::Now(json!({}))),
        }
    }

    pub fn terminate(&self, request: &Value, params: &Params<'_>) -> Answered {
        let id = params.text("processId")?;
        match self.process(id, |process| Ok(Arc::clone(&process.canceller))) {
            Err(_)
                if self.has(Defect::EndedProcessesTakeAll) || self.has(Defect::EndedProcessesCanBeEnded) =>
            {
                Ok(Answer::Now(json!({})))
            }
            Err(refusal) => Err(refusal),
            Ok(canceller) => {
                let state = self.core.lock();
                state.send(self.client, response(request, &Ok(json!({}))));
                let mine = || state.processes.iter().filter(|((client, _), _)| *client == self.client);
                if mine().count() > 1 && self.has(Defect::TerminateEndsAll) {
                    mine().for_each(|(_, process)| process.canceller.cancel());
                } else if !self.has(Defect::TerminateDoesNothing) {
                    canceller.cancel();
                }
                Ok(Answer::Elsewhere)
            }
        }
    }
}

/// Runs a command to its end, and answers its request.
async fn run(mut wish: ExecRequest, mut printer: Printer, mut cancelled: Cancel, (key, id): (String, Value)) {
    let (core, client, behaviour) = (Arc::clone(&printer.core), printer.client, printer.behaviour.clone());
    let program = Program::Words(std::mem::take(&mut wish.program));
    let timeout = wish.timeout;
    let buffered = !wish.stream;
    let reads = wish.stdin && !wish.tty;
    let mut answered = false;
    let mut job = wish.job;
    let mut output = |stream: Stream, bytes: &[u8]| printer.print(stream, bytes);
    let deaf = buffered && behaviour.prepares(Defect::BufferedCommandsAreNotEnded);
    let running = behaviour.during(Happening::ToolStarts, Happening::ToolEnds);
    let code = {
        let run = shell::run(&core, &mut job, &program, &mut output);
        let limit = async {
            match timeout {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
            let named = !key.starts_with('#');
            if behaviour.strikes(Defect::TimeoutsAreIgnored)
                || named && behaviour.strikes(Defect::NamedProcessesHaveNoTimeout)
            {
                std::future::pending().await
            }
        };
        let early = async {
            if !reads {
                std::future::pending().await
            }
            tokio::time::sleep(EARLY).await;
            if !behaviour.strikes(Defect::WaitingCommandsAreAnswered) {
                std::future::pending().await
            }
        };
        tokio::pin!(run, limit, early);
        loop {
            tokio::select! {
                biased;
                code = &mut run => break code,
                () = cancelled.wait(), if !deaf => break ENDED,
                () = &mut limit => break TOO_LONG,
                () = &mut early, if !answered => {
                    answered = true;
                    let result = json!({ "exitCode": 0, "stdout": "", "stderr": "" });
                    core.lock().send(client, response(&id, &Ok(result)));
                }
            }
        }
    };
    drop(running);
    if deaf && cancelled.is_set() {
        behaviour.took_effect();
    }
    let code = if code == ENDED && behaviour.strikes(Defect::TerminatedSucceeds) { 0 } else { code };
    let mut code = code;
    behaviour.mutate(&mut code, |defect, code| match defect {
        Defect::ExitCodesAreSigned if *code > 127 => *code -= 256,
        _ => {}
    });
    let mut state = core.lock();
    state.processes.remove(&(client, key));
    if answered {
        return;
    }
    let text = |kept: &Kept| String::from_utf8_lossy(&kept.bytes).into_owned();
    let mut result = json!({ "exitCode": code, "stdout": text(&printer.out), "stderr": text(&printer.err) });
    if behaviour.strikes(Defect::ExecHasNoStderr) {
        result.as_object_mut().map(|result| result.remove("stderr"));
    }
    state.send(client, response(&id, &Ok(result)));
    for params in std::mem::take(&mut printer.late) {
        state.notify(client, "command/exec/outputDelta", &params);
    }
}
