//! Progress bars on stderr, drawn only when it is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use kinfolk::Progress;
use std::sync::Mutex;

/// One bar for each stage, removed when the next begins.
#[derive(Default)]
pub struct Bars(Mutex<Option<ProgressBar>>);

impl Bars {
    fn current(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Progress for Bars {
    fn begin(&self, stage: &str, total: u64) {
        let bar = ProgressBar::new(total).with_prefix(stage.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{prefix:20} {wide_bar} {percent:>3}% {eta:>4} {msg}")
        {
            bar.set_style(style);
        }
        if let Some(before) = self.current().replace(bar) {
            before.finish_and_clear();
        }
    }

    fn advance(&self, steps: u64) {
        if let Some(bar) = &*self.current() {
            bar.inc(steps);
        }
    }

    fn forecast(&self, text: &str) {
        match &*self.current() {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn warn(&self, text: &str) {
        match &*self.current() {
            Some(bar) => bar.suspend(|| eprintln!("warning: {text}")),
            None => eprintln!("warning: {text}"),
        }
    }

    fn note(&self, text: &str) {
        if let Some(bar) = &*self.current() {
            bar.set_message(text.to_owned());
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        if let Some(bar) = self.current().take() {
            bar.finish_and_clear();
        }
    }
}
