//! Describes a redacted value by its type and its approximate length.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The description of a redacted value. Null, true and false share one kind, because a kind of its own would reveal
/// the value. The magnitude of a number is not shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "type", content = "length", rename_all = "snake_case")]
pub enum RedactedValueKind {
    /// A text with a class of its number of characters.
    Text(LengthClass),
    Number,
    Scalar,
    /// A list with a class of its number of items.
    List(LengthClass),
    /// An object with a class of its number of members.
    Object(LengthClass),
}

/// A class of lengths. The classes are wide, so that one more character rarely changes the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum LengthClass {
    /// 0.
    #[serde(rename = "empty")]
    Empty,
    /// 1 to 8.
    #[serde(rename = "1-8")]
    To8,
    /// 9 to 32.
    #[serde(rename = "9-32")]
    To32,
    /// 33 to 128.
    #[serde(rename = "33-128")]
    To128,
    /// 129 to 1024.
    #[serde(rename = "129-1024")]
    To1024,
    #[serde(rename = "longer")]
    Longer,
}

impl RedactedValueKind {
    /// Returns the description of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) => Self::Scalar,
            Value::Number(_) => Self::Number,
            Value::String(text) => Self::Text(LengthClass::of(text.chars().count())),
            Value::Array(items) => Self::List(LengthClass::of(items.len())),
            Value::Object(members) => Self::Object(LengthClass::of(members.len())),
        }
    }

    /// Returns whether it is a single value: it has one commitment and nothing below it.
    pub const fn is_leaf(self) -> bool {
        match self {
            Self::Text(_) | Self::Number | Self::Scalar => true,
            Self::List(length) | Self::Object(length) => matches!(length, LengthClass::Empty),
        }
    }
}

impl LengthClass {
    const fn of(count: usize) -> Self {
        match count {
            0 => Self::Empty,
            1..=8 => Self::To8,
            9..=32 => Self::To32,
            33..=128 => Self::To128,
            129..=1024 => Self::To1024,
            _ => Self::Longer,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Empty => "no",
            Self::To8 => "1 to 8",
            Self::To32 => "9 to 32",
            Self::To128 => "33 to 128",
            Self::To1024 => "129 to 1024",
            Self::Longer => "more than 1024",
        }
    }
}

impl fmt::Display for RedactedValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(length) => write!(f, "a text of {} characters", length.words()),
            Self::Number => f.write_str("a number"),
            Self::Scalar => f.write_str("true, false or null"),
            Self::List(length) => write!(f, "a list of {} items", length.words()),
            Self::Object(length) => write!(f, "an object of {} members", length.words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_one_kind_are_told_alike() {
        let alike = [
            (json!(null), json!(true)),
            (json!(true), json!(false)),
            (json!(0), json!(-1.5e300)),
            (json!("a"), json!("12345678")),
            (json!("x".repeat(33)), json!("é".repeat(128))),
            (json!("x".repeat(1025)), json!("x".repeat(100_000))),
            (json!([1]), json!([1, 2, 3, 4, 5, 6, 7, [8]])),
            (json!({"a": 1}), json!({"b": {"c": 1}})),
        ];
        for (one, other) in alike {
            let told = |it: &Value| {
                (RedactedValueKind::of(it), RedactedValueKind::of(it).to_string(), json!(RedactedValueKind::of(it)))
            };
            assert_eq!(told(&one), told(&other), "{one} and {other}");
        }
    }

    #[test]
    fn a_kind_is_told_as_type_and_length_class() {
        let table = [
            (json!(null), json!({"type": "scalar"}), "true, false or null"),
            (json!(4711), json!({"type": "number"}), "a number"),
            (json!(""), json!({"type": "text", "length": "empty"}), "a text of no characters"),
            (json!("12345678"), json!({"type": "text", "length": "1-8"}), "a text of 1 to 8 characters"),
            (json!("123456789"), json!({"type": "text", "length": "9-32"}), "a text of 9 to 32 characters"),
            (json!("x".repeat(33)), json!({"type": "text", "length": "33-128"}), "a text of 33 to 128 characters"),
            (json!("x".repeat(129)), json!({"type": "text", "length": "129-1024"}), "a text of 129 to 1024 characters"),
            (
                json!("x".repeat(1025)),
                json!({"type": "text", "length": "longer"}),
                "a text of more than 1024 characters",
            ),
            (json!([]), json!({"type": "list", "length": "empty"}), "a list of no items"),
            (json!({"a": 1}), json!({"type": "object", "length": "1-8"}), "an object of 1 to 8 members"),
        ];
        for (value, told, words) in table {
            let kind = RedactedValueKind::of(&value);
            assert_eq!((json!(kind), kind.to_string().as_str()), (told, words), "{value}");
            assert_eq!(kind.is_leaf(), crate::json::diff::is_leaf(&value), "{value}");
        }
    }
}
