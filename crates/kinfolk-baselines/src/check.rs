//! Refusals of parameters that cannot be, one clear error each.

use kinfolk::{Error, Result};

/// An error about the parameter that the command spells `name`.
pub(crate) fn refuse<T>(name: &'static str, expected: &'static str, found: impl ToString) -> Result<T> {
    Err(Error::Parameter { field: name, expected, found: found.to_string() })
}

/// From 1 to the number of rows.
pub(crate) fn clusters(clusters: usize, rows: usize) -> Result<()> {
    if clusters == 0 || clusters > rows {
        let found = format!("{clusters} for {rows} rows");
        return refuse("clusters", "at least 1, at most the number of rows", found);
    }
    Ok(())
}

/// At least 1.
pub(crate) fn at_least_one(name: &'static str, value: usize) -> Result<()> {
    if value == 0 { refuse(name, "at least 1", 0) } else { Ok(()) }
}

/// A number that a cosine can be.
pub(crate) fn cosine(name: &'static str, value: f32) -> Result<()> {
    if (-1.0..=1.0).contains(&value) { Ok(()) } else { refuse(name, "a similarity from -1 to 1", value) }
}

/// A finite number of 0 or more.
pub(crate) fn not_negative(name: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        refuse(name, "a finite number of 0 or more", value)
    }
}

/// A finite number above 0.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { refuse(name, "a finite number above 0", value) }
}
