//! Connections that switch protocols (websockets): once both sides have
//! agreed, bytes are copied both ways until one side ends.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tracing::debug;

use super::Shell;
use crate::drain::Phase;
use crate::telemetry::Event;
use crate::upstream;

/// Takes the client's side of the switch out of its request.
pub(super) fn client_side(request: &mut Request<Incoming>) -> OnUpgrade {
    hyper::upgrade::on(request)
}

/// Joins both sides if upstream agreed to switch.
pub(super) fn join(shell: &Arc<Shell>, client: OnUpgrade, reply: &mut Response<upstream::Body>) {
    if reply.status() != StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    let upstream = hyper::upgrade::on(reply);
    let shell = Arc::clone(shell);
    shell.telemetry.record(Event::Upgraded);
    tokio::spawn(tunnel(shell, client, upstream));
}

async fn tunnel(shell: Arc<Shell>, client: OnUpgrade, upstream: OnUpgrade) {
    let mut signal = shell.drain.signal();
    let copied = async {
        let (client, upstream) = tokio::try_join!(client, upstream)?;
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let copied = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
        Ok::<_, hyper::Error>(copied)
    };
    tokio::select! {
        result = copied => debug!(?result, "a tunnel ended"),
        () = signal.reached(Phase::Ending) => debug!("a tunnel was cut off"),
    }
}
