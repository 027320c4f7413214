//! Values of a message that the protocol mirrors into headers, since version 2026-07-28.
//!
//! A server can act on a header instead of the message. So a mirrored value must be the approved one.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The beginning of the names of headers with arguments.
pub const PREFIX: &str = "mcp-param-";

/// The member of a schema that names the header of an argument.
const ANNOTATION: &str = "x-mcp-header";

/// The marks around a value that is no plain text.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// An argument of a tool that is mirrored into a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MirroredArgument {
    /// The name of the header, in lower case.
    pub header: String,
    path: Vec<String>,
}

impl MirroredArgument {
    /// Returns the mirrored arguments of a tool. An invalid definition has none.
    pub fn of(tool: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        collect(&tool["inputSchema"], &mut Vec::new(), &mut found);
        let headers: BTreeSet<&str> = found.iter().map(|it| it.header.as_str()).collect();
        let is_name = |it: &str| it.len() > PREFIX.len() && it.bytes().all(is_token);
        let is_valid = headers.len() == found.len() && headers.iter().all(|it| is_name(it));
        if is_valid { found } else { Vec::new() }
    }

    /// Returns the value of the header. Without the argument there is none.
    pub fn value(&self, arguments: &Map<String, Value>) -> Option<String> {
        self.text(arguments).map(|it| encoded(&it))
    }

    /// Checks whether a header has the value of the argument.
    pub fn is(&self, header: &str, arguments: &Map<String, Value>) -> bool {
        let (Some(sent), Some(text)) = (decoded(header), self.text(arguments)) else { return false };
        sent == text || is_same_number(&sent, &text) && !self.at(arguments).is_some_and(Value::is_string)
    }

    fn text(&self, arguments: &Map<String, Value>) -> Option<String> {
        match self.at(arguments)? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn at<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        rest.iter().try_fold(arguments.get(first)?, |value, name| value.as_object()?.get(name))
    }
}

/// Returns a text as the value of a header.
pub fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|it| matches!(it, b'\t' | b' '..=b'~')) && text.trim() == text;
    match is_plain && !text.starts_with(ENCODED.0) {
        true => text.to_owned(),
        false => format!("{}{}{}", ENCODED.0, STANDARD.encode(text), ENCODED.1),
    }
}

/// Returns the text of a header.
pub fn decoded(header: &str) -> Option<String> {
    match header.strip_prefix(ENCODED.0).and_then(|it| it.strip_suffix(ENCODED.1)) {
        None => Some(header.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<MirroredArgument>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        let is_plain = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
        if let Some(header) = property[ANNOTATION].as_str().filter(|_| is_plain) {
            let header = format!("{PREFIX}{}", header.to_ascii_lowercase());
            found.push(MirroredArgument { header, path: path.clone() });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// Checks a character of a header's name.
fn is_token(it: u8) -> bool {
    it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it)
}

fn is_same_number(one: &str, other: &str) -> bool {
    matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one.to_bits() == other.to_bits())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn header_has_the_value_of_its_argument() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "near": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "list": {"items": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}},
            "map": {"type": "object", "x-mcp-header": "Map"},
        }});
        let mirrored = MirroredArgument::of(&json!({"inputSchema": schema}));
        let headers: Vec<&str> = mirrored.iter().map(|it| it.header.as_str()).collect();
        assert_eq!(headers, ["mcp-param-count", "mcp-param-region"]);
        let arguments = json!({"region": "Åland", "near": {"count": 42}});
        let arguments = arguments.as_object().unwrap();
        assert_eq!(mirrored[0].value(arguments).as_deref(), Some("42"));
        assert!(mirrored[0].is("42.0", arguments) && !mirrored[0].is("43", arguments));
        let encoded = mirrored[1].value(arguments).unwrap();
        assert_eq!(encoded, "=?base64?w4VsYW5k?=");
        assert!(mirrored[1].is(&encoded, arguments) && !mirrored[1].is("=?base64?w?=", arguments));
        assert!(mirrored[1].value(&Map::new()).is_none() && !mirrored[1].is("", &Map::new()));
        for text in ["plain", "a b", " padded ", "a\nb", "=?base64?literal?=", ""] {
            assert_eq!(decoded(&super::encoded(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn invalid_definition_mirrors_nothing() {
        for names in [["A", "a"], ["", "B"], ["a b", "c"], ["a\r\nx", "d"]] {
            let property = |name| json!({"type": "string", "x-mcp-header": name});
            let schema = json!({"properties": {"one": property(names[0]), "two": property(names[1])}});
            assert!(MirroredArgument::of(&json!({"inputSchema": schema})).is_empty(), "{names:?}");
        }
    }
}
