//! Faults below the messages: what a server makes of frames of RFC 6455 that no suite of ours writes.
//!
//! The bytes of a connection pass through a relay that takes them apart into frames, and goes wrong on one of them. Behind
//! it is the correct server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Fault;
use crate::wire::frame::{Frame, MASK};
use crate::wire::relay::{Interceptor, Plan, Way};

/// A fault and what sets it off.
#[derive(Clone, Copy)]
pub(in crate::reference) struct FrameFault {
    /// Its name, and the requirements of which a campaign must hold at least one broken; none: it breaks RFC 6455, of which
    /// no catalogue speaks.
    pub fault: Fault,
    trigger: fn(&Seen<'_>) -> bool,
    effect: Effect,
}

/// What the relay has seen of a client.
struct Seen<'s> {
    /// Its newest frame; none: it has hung up.
    frame: Option<&'s Frame>,
    /// A message of which fragments have come is not complete.
    within: bool,
    /// Half a frame has come.
    half: bool,
}

#[derive(Clone, Copy)]
enum Effect {
    /// The connection is cut.
    Cut,
    /// Nothing is read on this connection any more.
    Hang,
    /// The frame is passed over.
    Ignore,
    /// The frame is taken for another one.
    Taken(fn(&Frame) -> Frame),
    /// Connections that come later are cut at once.
    RefuseLater,
    /// The server's next close frame has this code.
    Code(u16),
}

/// Protocol and faults.
const ALL: &[(&str, &[FrameFault])] = &[
    (
        "agentloop",
        &[
            frame_fault(
                "fuzz-close-answered-wrong",
                "A close is answered with code 1005",
                &[],
                is_close,
                Effect::Code(1005),
            ),
            frame_fault(
                "fuzz-takes-reserved-bits",
                "A message with a reserved bit is accepted",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.rsv != 0 && frame.opcode == 1),
                Effect::Taken(|frame| Frame { rsv: 0, ..frame.clone() }),
            ),
        ],
    ),
    (
        "codelab",
        &[
            frame_fault(
                "fuzz-cut-on-ping-within",
                "A ping between two fragments ends the connection without a close frame",
                &["CL-ER-6"],
                |seen| seen.within && seen.frame.is_some_and(|frame| frame.opcode == 9),
                Effect::Cut,
            ),
            frame_fault(
                "fuzz-takes-bad-utf8",
                "Text that is not UTF-8 is accepted",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.opcode == 1 && frame.fin && !is_utf8(frame)),
                Effect::Taken(|frame| Frame {
                    payload: String::from_utf8_lossy(&frame.payload).into_owned().into_bytes(),
                    ..frame.clone()
                }),
            ),
        ],
    ),
    (
        "codey",
        &[
            frame_fault(
                "fuzz-hang-on-empty-fragment",
                "A fragment without a byte stops the connection",
                &["CO-ER-5"],
                |seen| seen.frame.is_some_and(|frame| frame.payload.is_empty() && !frame.fin),
                Effect::Hang,
            ),
            frame_fault("fuzz-ignores-close", "A close is not answered", &[], is_close, Effect::Ignore),
        ],
    ),
    (
        "minicodex",
        &[
            frame_fault(
                "fuzz-hang-on-fragments",
                "A message in fragments stops the connection",
                &["MC-ERR-7"],
                |seen| seen.frame.is_some_and(|frame| frame.opcode == 1 && !frame.fin),
                Effect::Hang,
            ),
            frame_fault(
                "fuzz-takes-unmasked",
                "A frame that is not masked is accepted",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.mask.is_none()),
                Effect::Taken(|frame| Frame { mask: Some(MASK), ..frame.clone() }),
            ),
        ],
    ),
    (
        "tinyvex",
        &[
            frame_fault(
                "fuzz-closed-door-behind-half-a-frame",
                "After a client that disconnected in the middle of a frame, no further connection is served",
                &["TV-ERR-9"],
                |seen| seen.frame.is_none() && seen.half,
                Effect::RefuseLater,
            ),
            frame_fault(
                "fuzz-takes-long-ping",
                "A ping of more than 125 bytes is accepted",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.opcode == 9 && frame.payload.len() > 125),
                Effect::Taken(|frame| Frame {
                    payload: frame.payload[..125].to_vec(),
                    form: None,
                    ..frame.clone()
                }),
            ),
        ],
    ),
];

const fn frame_fault(
    name: &'static str,
    title: &'static str,
    violates: &'static [&'static str],
    trigger: fn(&Seen<'_>) -> bool,
    effect: Effect,
) -> FrameFault {
    FrameFault { fault: Fault { name, title, violates, also: &[] }, trigger, effect }
}

fn is_close(seen: &Seen<'_>) -> bool {
    seen.frame.is_some_and(|frame| frame.opcode == 8)
}

fn is_utf8(frame: &Frame) -> bool {
    std::str::from_utf8(&frame.payload).is_ok()
}

/// The faults of a protocol below the messages.
pub(in crate::reference) fn of(protocol: &str) -> &'static [FrameFault] {
    ALL.iter().find(|(name, _)| *name == protocol).map_or(&[], |(_, all)| all)
}

/// What stands before a server with such a fault.
pub(in crate::reference) struct FaultyFrames {
    fault: FrameFault,
    refuses: AtomicBool,
}

impl FaultyFrames {
    pub fn new(fault: FrameFault) -> Self {
        Self { fault, refuses: AtomicBool::new(false) }
    }

    /// The server begins anew.
    pub fn restart(&self) {
        self.refuses.store(false, Ordering::Release);
    }

    /// No connection is served any more.
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Acquire)
    }

    /// What goes wrong on one connection.
    pub fn interceptor(self: &Arc<Self>) -> Box<dyn Interceptor> {
        Box::new(OfConnection { faulty: Arc::clone(self), code: None, within: false })
    }
}

struct OfConnection {
    faulty: Arc<FaultyFrames>,
    /// The code of the next close frame.
    code: Option<u16>,
    /// A message of which fragments have come is not complete.
    within: bool,
}

impl OfConnection {
    fn client_frame(&mut self, frame: &Frame, bytes: Vec<u8>, plan: &mut Plan) {
        let fault = self.faulty.fault;
        let hit = (fault.trigger)(&Seen { frame: Some(frame), within: self.within, half: false });
        if frame.opcode < 8 {
            self.within = !frame.fin;
        }
        match fault.effect {
            Effect::Cut if hit => plan.cut(),
            Effect::Hang if hit => plan.hang(Way::ToServer),
            Effect::Ignore if hit => {}
            Effect::Taken(other) if hit => plan.write(Way::ToServer, other(frame).encode()),
            Effect::Code(wrong) if hit => {
                self.code = Some(wrong);
                plan.write(Way::ToServer, bytes);
            }
            _ => plan.write(Way::ToServer, bytes),
        }
    }
}

impl Interceptor for OfConnection {
    fn frame(&mut self, way: Way, mut frame: Frame, bytes: Vec<u8>, plan: &mut Plan) {
        if way == Way::ToServer {
            return self.client_frame(&frame, bytes, plan);
        }
        match self.code.filter(|_| frame.opcode == 8) {
            Some(code) => {
                frame.payload = u16::to_be_bytes(code).to_vec();
                frame.form = None;
                plan.write(way, frame.encode());
            }
            None => plan.write(way, bytes),
        }
    }

    fn ended(&mut self, way: Way, half: bool, plan: &mut Plan) {
        if way == Way::ToClient {
            return plan.end(way);
        }
        let seen = Seen { frame: None, within: self.within, half };
        if (self.faulty.fault.trigger)(&seen) && matches!(self.faulty.fault.effect, Effect::RefuseLater) {
            self.faulty.refuses.store(true, Ordering::Release);
        }
        plan.cut();
    }
}
