//! Arrays of numbers, in memory or in a mapped file.

use bytemuck::Pod;
use bytes::Bytes;
use std::fmt;
use std::ops::Deref;

/// Numbers that are read wherever they are stored.
#[derive(Clone)]
pub(crate) enum Values<T> {
    Owned(Vec<T>),
    /// Part of a file's bytes, aligned. Clones share them.
    Mapped(Bytes),
}

impl<T: Pod> Values<T> {
    /// The numbers, to be changed; those of a file are copied first.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Values::Mapped(_) = self {
            *self = Values::Owned(self.to_vec());
        }
        match self {
            Values::Owned(values) => values,
            Values::Mapped(_) => unreachable!("just copied"),
        }
    }

    pub fn into_vec(mut self) -> Vec<T> {
        std::mem::take(self.to_mut())
    }
}

impl<T: Pod> Deref for Values<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Values::Owned(values) => values,
            Values::Mapped(bytes) => bytemuck::cast_slice(bytes),
        }
    }
}

impl<T> From<Vec<T>> for Values<T> {
    fn from(values: Vec<T>) -> Self {
        Values::Owned(values)
    }
}

impl<T: Pod + PartialEq> PartialEq for Values<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Values<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}
