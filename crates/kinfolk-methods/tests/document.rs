//! `docs/methods.md` is up to date with the registry.

use std::path::Path;

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/methods.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text == kinfolk_methods::methods_markdown(),
        "docs/methods.md is out of date: cargo xtask methods"
    );
}
