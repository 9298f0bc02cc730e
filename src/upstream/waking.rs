//! How a connection wakes the exchange that drives it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Rounds of one poll; what is not done then waits its turn.
const ROUNDS: usize = 4;

/// Polls a connection together with what reads from it. Each wakes the other while both are polled: that
/// begins another round at once, where the task itself would be polled once more for nothing.
pub(super) struct Waking {
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Default)]
struct Inner {
    /// A round is being made: nobody has to be woken.
    polling: AtomicBool,
    /// Somebody asked for another one.
    again: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Default for Waking {
    fn default() -> Self {
        let inner = Arc::new(Inner::default());
        let waker = Waker::from(Arc::clone(&inner));
        Waking { inner, waker }
    }
}

impl Waking {
    /// Polls until it is ready, or nothing more happens by itself.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut round: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let inner = &self.inner;
        inner.wakes(cx.waker());
        for _ in 0..ROUNDS {
            inner.again.store(false, Ordering::SeqCst);
            inner.polling.store(true, Ordering::SeqCst);
            let done = round(&mut Context::from_waker(&self.waker));
            inner.polling.store(false, Ordering::SeqCst);
            if done.is_ready() || !inner.again.load(Ordering::SeqCst) {
                return done;
            }
        }
        // Whoever still asks may be asking for a pause, as a task does that has used up its turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Inner {
    fn wakes(&self, waker: &Waker) {
        let mut task = self.task();
        if !task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order, and the other way round in `poll`: one of the two sees the other.
        self.again.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst)
            && let Some(task) = &*self.task()
        {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What one poll does with a round that asks for more this many times: rounds, wakes of the task.
    fn check(asks: usize, expected: (usize, usize)) {
        let (waking, woken, mut rounds) = (Waking::default(), Arc::new(Woken::default()), 0);
        let task = Waker::from(Arc::clone(&woken));
        let done = waking.poll(&mut Context::from_waker(&task), |cx| {
            rounds += 1;
            if rounds <= asks {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(done.is_pending());
        assert_eq!((rounds, woken.0.load(Ordering::Relaxed)), expected);
    }

    #[test]
    fn what_asks_for_more_while_it_is_polled_gets_another_round() {
        check(0, (1, 0));
        check(1, (2, 0));
        check(3, (4, 0));
    }

    #[test]
    fn what_asks_for_ever_does_not_keep_the_task() {
        check(usize::MAX, (ROUNDS, 1));
    }

    #[test]
    fn a_wake_from_elsewhere_reaches_the_task_that_polled_last() {
        let waking = Waking::default();
        let [first, last] = [Arc::new(Woken::default()), Arc::new(Woken::default())];
        let mut kept = None;
        for woken in [&first, &last] {
            let task = Waker::from(Arc::clone(woken));
            let _ = waking.poll(&mut Context::from_waker(&task), |cx| {
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
        }
        kept.expect("polled").wake();
        assert_eq!((first.0.load(Ordering::Relaxed), last.0.load(Ordering::Relaxed)), (0, 1));
    }
}
