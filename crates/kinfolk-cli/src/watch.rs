//! What each part of a run costs: wall time, processor time and memory, by what the progress bar calls it.
//!
//! A part lasts from one `begin` to the next. Memory is what the process holds besides pages of mapped files, which the system may
//! drop; a thread looks every [`INTERVAL`], so a shorter peak is missed. Linux only; elsewhere memory is left out.

use crate::machine::{anonymous_memory, cpu_time};
use kinfolk::Progress;
use kinfolk::results::PartCost;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_millis(50);

/// Forwards progress and notes what each part costs.
pub struct Watch<P> {
    progress: P,
    parts: Arc<Mutex<Parts>>,
    /// Dropped to end the thread.
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Parts {
    costs: Vec<PartCost>,
    /// The part that runs, and when and at which processor time it began.
    current: Option<(usize, Instant, Duration)>,
}

impl Parts {
    fn end(&mut self) {
        if let Some((at, start, cpu)) = self.current.take() {
            self.costs[at].seconds += start.elapsed().as_secs_f64();
            self.costs[at].cpu_seconds += cpu_time().saturating_sub(cpu).as_secs_f64();
        }
    }

    fn begin(&mut self, name: &str) {
        self.end();
        let known = self.costs.iter().position(|part| part.part == name);
        let at = known.unwrap_or_else(|| {
            self.costs.push(PartCost::new(name));
            self.costs.len() - 1
        });
        self.current = Some((at, Instant::now(), cpu_time()));
        self.look();
    }

    fn look(&mut self) {
        if let Some((at, ..)) = self.current {
            self.costs[at].memory_bytes = self.costs[at].memory_bytes.max(anonymous_memory());
        }
    }
}

fn lock(parts: &Mutex<Parts>) -> MutexGuard<'_, Parts> {
    parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<P: Progress> Watch<P> {
    pub fn new(progress: P) -> Self {
        let parts = Arc::new(Mutex::new(Parts::default()));
        let (end, ended) = mpsc::channel();
        let watched = Arc::clone(&parts);
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                lock(&watched).look();
            }
        });
        Watch { progress, parts, end: Some(end), thread: Some(thread) }
    }

    /// The parts in the order in which they began; the last one ends now.
    pub fn parts(&self) -> Vec<PartCost> {
        let mut parts = lock(&self.parts);
        parts.end();
        parts.costs.clone()
    }
}

impl<P> Drop for Watch<P> {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<P: Progress> Progress for Watch<P> {
    fn begin(&self, stage: &str, total: u64) {
        lock(&self.parts).begin(stage);
        self.progress.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.progress.advance(steps);
    }

    fn note(&self, text: &str) {
        self.progress.note(text);
    }

    fn forecast(&self, text: &str) {
        self.progress.forecast(text);
    }

    fn warn(&self, text: &str) {
        self.progress.warn(text);
    }

    fn cancelled(&self) -> bool {
        self.progress.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_memory_belong_to_the_part_that_runs() {
        let watch = Watch::new(());
        watch.begin("rest", 1);
        std::thread::sleep(Duration::from_millis(40));
        watch.begin("work", 1);
        let mut block = vec![1u8; 64 << 20];
        let start = cpu_time();
        while cpu_time() - start < Duration::from_millis(120) {
            block[0] = std::hint::black_box(block[0].wrapping_add(1));
        }
        std::thread::sleep(2 * INTERVAL);
        drop(std::hint::black_box(block));
        watch.begin("rest", 1);
        std::thread::sleep(Duration::from_millis(40));
        let parts = watch.parts();
        assert_eq!(parts.iter().map(|part| &part.part[..]).collect::<Vec<_>>(), ["rest", "work"]);
        assert!(parts[0].seconds >= 0.08 && parts[1].cpu_seconds >= 0.12, "{parts:?}");
        #[cfg(target_os = "linux")]
        assert!(parts[1].memory_bytes.unwrap() >= 64 << 20, "{parts:?}");
    }
}
