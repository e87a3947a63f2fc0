//! The kinfolk command.
fn main() {}
