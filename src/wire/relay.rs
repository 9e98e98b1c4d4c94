//! A relay between a client and a server that takes both ways apart into frames: what a proxy, a style or a mutant of the wire
//! does with them is an [`Interceptor`].

mod frames;
mod mutate;
mod operator;
mod plan;
mod surroundings;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

pub use frames::Frames;
pub use mutate::{Mutation, Occurrence};
pub use operator::Operator;
pub use plan::{Action, Plan};

use super::frame::Frame;

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;
/// Plans that wait to be carried out before the relay reads no further: a side that takes nothing is felt on the other.
const AHEAD: usize = 8;

/// Which way something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// What becomes of a connection's bytes. Left as it is, everything passes.
pub trait Interceptor: Send {
    /// How long bytes are gathered before they are looked at: what comes meanwhile belongs to the same batch.
    fn gathers(&self, _way: Way) -> Option<Duration> {
        None
    }

    /// How many plans are kept for a side that takes nothing; `None`: a few.
    fn ahead(&self, _way: Way) -> Option<usize> {
        None
    }

    /// Bytes have come; the frames among them follow one by one.
    fn batch(&mut self, _way: Way, _plan: &mut Plan) {}

    /// Bytes of the upgrade, or behind a frame that is too long to be looked at.
    fn bytes(&mut self, way: Way, bytes: Vec<u8>, plan: &mut Plan) {
        plan.write(way, bytes);
    }

    /// A frame, and the bytes that it came as.
    fn frame(&mut self, way: Way, _frame: Frame, bytes: Vec<u8>, plan: &mut Plan) {
        plan.write(way, bytes);
    }

    /// The frames of a batch have been looked at.
    fn batch_over(&mut self, _way: Way, _plan: &mut Plan) {}

    /// The side that sends this way has hung up; `half`: in the middle of a frame.
    fn ended(&mut self, way: Way, _half: bool, plan: &mut Plan) {
        plan.end(way);
    }
}

/// Passes bytes between a client and a server until both have hung up, or the interceptor cuts the connection.
pub async fn relay(client: TcpStream, server: TcpStream, interceptor: Box<dyn Interceptor>) {
    // Only small frames: what is written is to go out at once. Without it the relay is slower, and right.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (server_plans, for_server) = mpsc::channel(interceptor.ahead(Way::ToServer).unwrap_or(AHEAD));
    let (client_plans, for_client) = mpsc::channel(interceptor.ahead(Way::ToClient).unwrap_or(AHEAD));
    let shared = Shared { interceptor: Mutex::new(interceptor), server_plans, client_plans };
    let reading = async {
        tokio::join!(shared.read(Way::ToServer, from_client), shared.read(Way::ToClient, from_server));
    };
    // Whoever has hung up may still be written to: the connection is over when nothing is left to write on either side.
    let writing = async { tokio::try_join!(write(to_server, for_server), write(to_client, for_client)) };
    tokio::select! {
        () = reading => {}
        _ = writing => {}
    }
}

struct Shared {
    interceptor: Mutex<Box<dyn Interceptor>>,
    server_plans: mpsc::Sender<Vec<Action>>,
    client_plans: mpsc::Sender<Vec<Action>>,
}

impl Shared {
    /// Reads one side until it hangs up, and for ever from then on: the connection ends when what was planned is done.
    async fn read(&self, way: Way, mut side: OwnedReadHalf) {
        let mut frames = Frames::default();
        let mut buffer = vec![0; CHUNK];
        loop {
            let gathers = self.ask(|it| it.gathers(way));
            if let Some(time) = gathers
                && side.readable().await.is_ok()
            {
                tokio::time::sleep(time).await;
            }
            let length = side.read(&mut buffer).await.unwrap_or(0);
            let mut plan = Plan::default();
            self.ask(|it| match length {
                0 => it.ended(way, frames.is_half(), &mut plan),
                _ => take(it, way, &mut frames, &buffer[..length], &mut plan),
            });
            let hangs = plan.hangs(way);
            self.carry_out(plan).await;
            if length == 0 || hangs {
                std::future::pending::<()>().await;
            }
        }
    }

    fn ask<T>(&self, question: impl FnOnce(&mut dyn Interceptor) -> T) -> T {
        question(self.interceptor.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }

    async fn carry_out(&self, plan: Plan) {
        let Plan { to_server, to_client, .. } = plan;
        // An error: that side's writer is gone, and the connection ends with it.
        if !to_server.is_empty() {
            let _ = self.server_plans.send(to_server).await;
        }
        if !to_client.is_empty() {
            let _ = self.client_plans.send(to_client).await;
        }
    }
}

fn take(it: &mut dyn Interceptor, way: Way, frames: &mut Frames, bytes: &[u8], plan: &mut Plan) {
    it.batch(way, plan);
    let head = frames.take_head(bytes);
    if !head.is_empty() {
        it.bytes(way, head, plan);
    }
    while let Some((frame, bytes)) = frames.next_frame() {
        it.frame(way, frame, bytes, plan);
        if plan.hangs(way) {
            return;
        }
    }
    it.batch_over(way, plan);
    let endless = frames.take_endless();
    if !endless.is_empty() {
        it.bytes(way, endless, plan);
    }
}

/// The connection is to be cut.
struct Cut;

/// Carries out what is planned for one side, until that side is hung up or takes nothing any more.
async fn write(mut side: OwnedWriteHalf, mut plans: mpsc::Receiver<Vec<Action>>) -> Result<(), Cut> {
    while let Some(actions) = plans.recv().await {
        for action in actions {
            match action {
                Action::Write(bytes) => {
                    if side.write_all(&bytes).await.is_err() {
                        return Ok(());
                    }
                }
                Action::Wait(time) => tokio::time::sleep(time).await,
                Action::End => {
                    // An error: it is gone already.
                    let _ = side.shutdown().await;
                    return Ok(());
                }
                Action::Cut => return Err(Cut),
            }
        }
    }
    Ok(())
}
