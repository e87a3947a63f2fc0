//! Parameters by name: declared once, with type, default, range and help, and checked in one place.
//!
//! [`parameters!`](crate::parameters) declares a struct of parameters. Its fields are plain, so Rust code writes
//! `Density { tau: Some(0.6), ..Default::default() }`. The command and Python set them by name, as text.

use crate::{Error, Result};

/// The type of a parameter, for documentation and for other languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Text of another form, which the range describes.
    Text,
}

/// One parameter of a method.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ParamSpec {
    /// The name of the field.
    pub name: &'static str,
    /// Its type.
    pub kind: ParamKind,
    /// Whether the method can choose the value itself, written `auto`.
    pub automatic: bool,
    /// Its default, as text.
    pub default: String,
    /// Its range, in words.
    pub range: &'static str,
    /// Its description.
    pub help: &'static str,
}

/// A struct whose fields can be set by name.
pub trait Parameters {
    /// Every parameter, in the order of the fields.
    fn specs(&self) -> Vec<ParamSpec>;

    /// The value of a parameter as text; `None` if there is no such parameter.
    fn get(&self, name: &str) -> Option<String>;

    /// Sets a parameter; refuses an unknown name and a value out of range.
    fn set(&mut self, name: &str, value: &str) -> Result<()>;

    /// Refuses values out of range.
    fn check(&self) -> Result<()>;

    /// Every parameter and its value.
    fn values(&self) -> Vec<(&'static str, String)> {
        let value = |spec: ParamSpec| (spec.name, self.get(spec.name).unwrap_or_default());
        self.specs().into_iter().map(value).collect()
    }
}

/// The error for a parameter that does not exist, which lists those that do.
#[doc(hidden)]
pub fn unknown_parameter(name: &str, known: &[&'static str]) -> Error {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Error::Parameter {
        field: "param",
        expected: "a parameter of the method",
        found: format!("{name} (there are {known})"),
    }
}

/// A type that a parameter can have.
pub trait ParamValue: Sized {
    /// Its kind.
    const KIND: ParamKind;
    /// The expected text, in words.
    const EXPECTED: &'static str;
    /// Whether `auto` is a value.
    const AUTOMATIC: bool = false;
    /// Parses a value.
    fn parse(text: &str) -> Option<Self>;
    /// Formats a value.
    fn format(&self) -> String;
}

macro_rules! plain_values {
    ($($kind:ty: $variant:ident, $expected:literal;)*) => { $(
        impl ParamValue for $kind {
            const KIND: ParamKind = ParamKind::$variant;
            const EXPECTED: &'static str = $expected;
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn format(&self) -> String {
                self.to_string()
            }
        }
    )* };
}

plain_values! {
    usize: Integer, "a whole number, 0 or more";
    i64: Integer, "a whole number";
    u64: Integer, "a whole number, 0 or more";
    f32: Number, "a number";
    f64: Number, "a number";
    bool: Boolean, "true or false";
}

/// `auto` means that the method chooses the value itself.
impl<T: ParamValue> ParamValue for Option<T> {
    const KIND: ParamKind = T::KIND;
    const EXPECTED: &'static str = T::EXPECTED;
    const AUTOMATIC: bool = true;

    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(None),
            text => T::parse(text).map(Some),
        }
    }

    fn format(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_owned(), ParamValue::format)
    }
}

/// Makes an enum a [`ParamValue`] whose values are words.
#[macro_export]
macro_rules! word_values {
    ($kind:ty: $expected:literal, $($word:literal => $value:path),+ $(,)?) => {
        impl $crate::ParamValue for $kind {
            const KIND: $crate::ParamKind = $crate::ParamKind::Choice(&[$($word),+]);
            const EXPECTED: &'static str = $expected;
            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some($value),)+
                    _ => None,
                }
            }
            fn format(&self) -> String {
                match self {
                    $($value => $word.to_owned(),)+
                }
            }
        }
    };
}

/// Declares a struct of parameters with their types, defaults, ranges and help.
///
/// ```
/// use kinfolk::Parameters;
///
/// kinfolk::parameters! {
///     /// Joins rows that are similar enough.
///     #[derive(Debug, Clone, PartialEq)]
///     pub struct Nearest {
///         /// Pairs of at most this similarity are not joined.
///         pub th: f32 = 0.5, "a similarity from -1 to 1", |th| (-1.0..=1.0).contains(th);
///         /// Whether to look twice.
///         pub twice: bool = false;
///     }
/// }
///
/// let mut nearest = Nearest::default();
/// nearest.set("th", "0.7")?;
/// assert_eq!(nearest, Nearest { th: 0.7, twice: false });
/// let message = nearest.set("th", "7").unwrap_err().to_string();
/// assert_eq!(message, "th: expected a similarity from -1 to 1, found 7");
/// assert_eq!(nearest.specs()[0].help.trim(), "Pairs of at most this similarity are not joined.");
/// # Ok::<(), kinfolk::Error>(())
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$outer:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $help:literal])+
                pub $field:ident: $kind:ty = $default:expr $(, $range:literal, $check:expr)?;
            )*
        }
    ) => {
        $(#[$outer])*
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $crate::Parameters for $name {
            fn specs(&self) -> Vec<$crate::ParamSpec> {
                let default = $name::default();
                vec![$($crate::param_spec(
                    stringify!($field),
                    &default.$field,
                    $crate::parameters!(@range $kind $(, $range)?),
                    concat!($($help, "\n"),+),
                ),)*]
            }

            fn get(&self, name: &str) -> Option<String> {
                match name {
                    $(stringify!($field) => Some($crate::ParamValue::format(&self.$field)),)*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, value: &str) -> $crate::Result<()> {
                match name {
                    $(stringify!($field) => {
                        let expected = $crate::parameters!(@range $kind $(, $range)?);
                        let refused = || $crate::Error::Parameter {
                            field: stringify!($field), expected, found: value.to_owned(),
                        };
                        let parsed = <$kind as $crate::ParamValue>::parse(value).ok_or_else(refused)?;
                        $(
                            let check: fn(&$kind) -> bool = $check;
                            if !check(&parsed) {
                                return Err(refused());
                            }
                            let _ = $range;
                        )?
                        self.$field = parsed;
                        Ok(())
                    })*
                    _ => Err($crate::unknown_parameter(name, &[$(stringify!($field)),*])),
                }
            }

            fn check(&self) -> $crate::Result<()> {
                $($(
                    let check: fn(&$kind) -> bool = $check;
                    if !check(&self.$field) {
                        let found = $crate::ParamValue::format(&self.$field);
                        return Err($crate::Error::Parameter {
                            field: stringify!($field), expected: $range, found,
                        });
                    }
                )?)*
                Ok(())
            }
        }
    };
    (@range $kind:ty, $range:literal) => { $range };
    (@range $kind:ty) => { <$kind as $crate::ParamValue>::EXPECTED };
}

/// The [`ParamSpec`] of one field of [`parameters!`](crate::parameters).
#[doc(hidden)]
pub fn param_spec<T: ParamValue>(
    name: &'static str,
    default: &T,
    range: &'static str,
    help: &'static str,
) -> ParamSpec {
    ParamSpec {
        name,
        kind: T::KIND,
        automatic: T::AUTOMATIC,
        default: default.format(),
        range,
        help: help.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::parameters! {
        /// Every type.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Every {
            /// Counts.
            pub count: usize = 3, "at least 1", |count| *count >= 1;
            /// Found by itself.
            pub tau: Option<f32> = None, "a similarity from -1 to 1",
                |tau| tau.is_none_or(|tau| (-1.0..=1.0).contains(&tau));
            /// Yes or no,
            /// on two lines.
            pub fast: bool = true;
        }
    }

    #[test]
    fn values_come_back_as_they_were_written() {
        let mut every = Every::default();
        for (name, value) in every.values() {
            every.set(name, &value).unwrap();
        }
        assert_eq!(every, Every::default());
        every.set("tau", "0.25").unwrap();
        assert_eq!((every.tau, every.get("tau").unwrap()), (Some(0.25), "0.25".to_owned()));
        every.set("tau", "auto").unwrap();
        assert_eq!(every.tau, None);
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let mut every = Every::default();
        let mut message = |name: &str, value: &str| every.set(name, value).unwrap_err().to_string();
        assert_eq!(message("count", "0"), "count: expected at least 1, found 0");
        assert_eq!(message("count", "many"), "count: expected at least 1, found many");
        assert_eq!(message("fast", "no"), "fast: expected true or false, found no");
        assert_eq!(
            message("slow", "1"),
            "param: expected a parameter of the method, found slow (there are count, tau, fast)"
        );
        let message = Every { tau: Some(f32::NAN), ..Every::default() }.check().unwrap_err().to_string();
        assert_eq!(message, "tau: expected a similarity from -1 to 1, found NaN");
    }

    #[test]
    fn specs_say_what_the_declaration_says() {
        let specs = Every::default().specs();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["count", "tau", "fast"]);
        assert_eq!((specs[0].kind, specs[0].default.as_str()), (ParamKind::Integer, "3"));
        assert!(specs[1].automatic && specs[1].default == "auto");
        assert_eq!(specs[2].help, "Yes or no,\n on two lines.");
    }
}
