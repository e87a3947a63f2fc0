//! The Rust examples of the documents, compiled and run as documentation tests.

#[doc = include_str!("../../../README.md")]
pub struct Readme;

#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;

#[doc = include_str!("../../../docs/cookbook.md")]
pub struct Cookbook;
