//! synth.
