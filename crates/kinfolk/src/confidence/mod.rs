//! confidence.
