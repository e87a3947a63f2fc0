//! Prints `docs/methods.md`; `cargo xtask methods` writes it.

fn main() {
    print!("{}", kinfolk_methods::methods_markdown());
}
