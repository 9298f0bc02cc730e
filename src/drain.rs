//! How Seam ends: readiness, the signals, and the deadline of what still runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::signal::unix;
use tokio::sync::watch;

/// How long what was cut off may take to say so to its clients.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where the process stands. It only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Connections are accepted.
    Serving,
    /// None are; what runs may finish.
    Draining,
    /// What runs ends now.
    Ending,
}

/// The one who says when to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Drain {
    phase: watch::Sender<Phase>,
    /// Carries nothing: its receivers are the signals, so that it closes when the last is dropped.
    held: watch::Sender<()>,
    ending: Ending,
    starting: Arc<AtomicUsize>,
}

/// Held by whatever has to finish before the process ends, and told when to.
#[derive(Clone, Debug)]
pub struct Signal {
    phase: watch::Receiver<Phase>,
    _held: watch::Receiver<()>,
}

/// Whether what runs has to end now: fit to be asked for every chunk.
#[derive(Clone, Debug, Default)]
pub struct Ending(Arc<AtomicBool>);

/// Held by a component until it can serve; `/ready` waits for all of them.
#[derive(Debug)]
pub struct Latch(Arc<AtomicUsize>);

impl Default for Drain {
    fn default() -> Self {
        Drain {
            phase: watch::Sender::new(Phase::Serving),
            held: watch::Sender::new(()),
            ending: Ending::default(),
            starting: Arc::default(),
        }
    }
}

impl Drain {
    /// A signal for something that has to finish.
    pub fn signal(&self) -> Signal {
        Signal { phase: self.phase.subscribe(), _held: self.held.subscribe() }
    }

    /// The flag that is up once everything has to end.
    pub fn ending(&self) -> Ending {
        self.ending.clone()
    }

    /// A latch for something that has to start.
    pub fn latch(&self) -> Latch {
        self.starting.fetch_add(1, Ordering::Relaxed);
        Latch(Arc::clone(&self.starting))
    }

    /// Whether requests should be sent here.
    pub fn is_ready(&self) -> bool {
        self.starting.load(Ordering::Relaxed) == 0 && self.phase() == Phase::Serving
    }

    /// Where the process stands.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Asks to end: the first time everything may finish, the second time it ends now.
    pub fn ask(&self) {
        match self.phase() {
            Phase::Serving => self.advance(Phase::Draining),
            Phase::Draining | Phase::Ending => self.advance(Phase::Ending),
        }
    }

    /// Waits until all signals are dropped, at most until `deadline` after
    /// draining began; what runs then is told to end and given a moment to say so.
    pub async fn finished(&self, deadline: Duration) {
        self.reached(Phase::Draining).await;
        tokio::select! {
            () = self.held.closed() => return,
            () = self.reached(Phase::Ending) => (),
            () = tokio::time::sleep(deadline) => self.advance(Phase::Ending),
        }
        // A peer that does not read its farewell is not waited for.
        let _ = tokio::time::timeout(FAREWELL, self.held.closed()).await;
    }

    async fn reached(&self, phase: Phase) {
        let mut receiver = self.phase.subscribe();
        let _ = receiver.wait_for(|now| *now >= phase).await;
    }

    fn advance(&self, phase: Phase) {
        if phase == Phase::Ending {
            self.ending.0.store(true, Ordering::Relaxed);
        }
        self.phase.send_if_modified(|now| {
            let moved = *now < phase;
            *now = phase.max(*now);
            moved
        });
    }
}

impl Signal {
    /// Where the process stands.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until the process stands at `phase` or beyond.
    pub async fn reached(&mut self, phase: Phase) {
        if self.phase.wait_for(|now| *now >= phase).await.is_err() {
            // Nobody is left to end us: then nobody will.
            std::future::pending::<()>().await;
        }
    }
}

impl Ending {
    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The signals that ask to end: SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    /// Takes them over from here on. Done before anything is served, so that none of them
    /// can end the process the hard way.
    pub fn take() -> std::io::Result<Signals> {
        let terminate = unix::signal(unix::SignalKind::terminate())?;
        let interrupt = unix::signal(unix::SignalKind::interrupt())?;
        Ok(Signals { terminate, interrupt })
    }

    /// Asks `drain` to end at every one of them, for as long as it is polled.
    pub async fn obey(mut self, drain: Drain) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => (),
                _ = self.interrupt.recv() => (),
            }
            drain.ask();
            tracing::info!(phase = ?drain.phase(), "asked to end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_every_latch_is_dropped_and_never_again_once_draining() {
        let drain = Drain::default();
        let (store, listener) = (drain.latch(), drain.latch());
        assert!(!drain.is_ready());
        drop(store);
        assert!(!drain.is_ready());
        drop(listener);
        assert!(drain.is_ready());
        drain.ask();
        assert!(!drain.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn what_finishes_in_time_is_not_cut_off() {
        let drain = Drain::default();
        let signal = drain.signal();
        drain.ask();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            drop(signal);
        });
        let began = tokio::time::Instant::now();
        drain.finished(Duration::from_secs(25)).await;
        assert_eq!(began.elapsed().as_secs(), 3);
        assert_eq!(drain.phase(), Phase::Draining);
    }

    #[tokio::test(start_paused = true)]
    async fn what_runs_at_the_deadline_is_told_to_end_and_not_waited_for_long() {
        let drain = Drain::default();
        let signal = drain.signal();
        drain.ask();
        let began = tokio::time::Instant::now();
        drain.finished(Duration::from_secs(25)).await;
        assert!(drain.ending().is_up());
        assert_eq!(signal.phase(), Phase::Ending);
        assert_eq!(began.elapsed(), Duration::from_secs(26));
    }

    #[tokio::test(start_paused = true)]
    async fn asked_twice_it_ends_now() {
        let drain = Drain::default();
        let mut signal = drain.signal();
        drain.ask();
        drain.ask();
        let began = tokio::time::Instant::now();
        tokio::spawn(async move { signal.reached(Phase::Ending).await });
        drain.finished(Duration::from_secs(25)).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
