//! connectivity.
