//! Runs work in a thread pool while the calling thread waits, checks for Ctrl-C and shows progress.
//!
//! Each call has its own pool: `n_jobs` is the number of its threads, no threads remain that would break forked processes, and
//! calls from several Python threads do not wait for one another.

use crate::errors::raise;
use kinfolk::Progress;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// How often the calling thread wakes.
const INTERVAL: Duration = Duration::from_millis(50);

/// Options of a call: `n_jobs` as in scikit-learn, and a callback for progress.
#[derive(FromPyObject)]
pub struct Job {
    jobs: Option<i64>,
    report: Option<Py<PyAny>>,
}

impl Job {
    /// On so many threads, without a callback.
    pub fn on_threads(jobs: Option<i64>) -> Self {
        Self { jobs, report: None }
    }

    fn threads(&self) -> PyResult<usize> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        match self.jobs {
            // The pool's own choice: all cores, or what RAYON_NUM_THREADS says.
            None | Some(-1) => Ok(0),
            Some(0) => Err(PyValueError::new_err("n_jobs: expected a number other than 0, or None, found 0")),
            Some(jobs @ 1..) => Ok(jobs as usize),
            Some(jobs) => Ok((cores as i64).saturating_add(1).saturating_add(jobs).max(1) as usize),
        }
    }

    /// Does `work` without holding the interpreter.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Progress) -> kinfolk::Result<T> + Send,
    ) -> PyResult<T> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads()?).build();
        let pool = pool.map_err(|e| PyRuntimeError::new_err(format!("n_jobs: {e}")))?;
        let watched = Watched::default();
        let (sender, mut receiver) = sync_channel(1);
        let mut raised = None;
        let outcome = pool.in_place_scope(|scope| {
            let watched = &watched;
            scope.spawn(move |_| {
                let outcome = catch_unwind(AssertUnwindSafe(|| work(watched)));
                // The receiver is below and waits.
                let _ = sender.send(outcome);
            });
            loop {
                let receiver = &mut receiver;
                match py.detach(move || receiver.recv_timeout(INTERVAL)) {
                    Ok(outcome) => return outcome,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Box::new("a thread ended without a result"));
                    }
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = py.check_signals().and_then(|()| self.tell(py, watched)) {
                            watched.stop.store(true, Ordering::Relaxed);
                            raised = Some(error);
                        }
                    }
                }
            }
        });
        match (raised, outcome) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => {
                self.tell(py, &watched)?;
                result.map_err(raise)
            }
            (None, Err(panic)) => Err(failure(&*panic)),
        }
    }

    fn tell(&self, py: Python<'_>, watched: &Watched) -> PyResult<()> {
        for warning in std::mem::take(&mut watched.stage().warnings) {
            let text = std::ffi::CString::new(warning).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 2)?;
        }
        let Some(report) = &self.report else { return Ok(()) };
        let Stage { name, total, note, .. } = watched.stage().clone();
        // A stage may count a little more than it promised.
        let done = watched.done.load(Ordering::Relaxed).min(total);
        report.call1(py, (name, done, total, note)).map(drop)
    }
}

/// A panic is a bug, but must not end the interpreter.
fn failure(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!("a mistake in kinfolk: {}", text.unwrap_or("unknown")))
}

#[derive(Clone, Default)]
struct Stage {
    name: String,
    total: u64,
    note: String,
    /// Not yet passed on.
    warnings: Vec<String>,
}

/// The state that the worker threads and the calling thread share.
#[derive(Default)]
struct Watched {
    stop: AtomicBool,
    stage: Mutex<Stage>,
    done: AtomicU64,
}

impl Watched {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Progress for Watched {
    fn begin(&self, stage: &str, total: u64) {
        let warnings = std::mem::take(&mut self.stage().warnings);
        *self.stage() = Stage { name: stage.to_owned(), total, note: String::new(), warnings };
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn warn(&self, text: &str) {
        self.stage().warnings.push(text.to_owned());
    }

    fn note(&self, text: &str) {
        self.stage().note = text.to_owned();
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
