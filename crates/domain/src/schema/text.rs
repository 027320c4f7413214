//! Reads schema texts as JSON values, with numbers as they are written.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use super::SchemaError;

/// The strict parser of states is not used, because a schema may contain `"maximum": 9223372036854775807`, which no
/// state can. Duplicate keys are errors, because two readers could read two different schemas.
pub(super) fn from_json(text: &str) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Unambiguous.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    // Text after the schema would otherwise be ignored.
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(value)
}

struct Unambiguous;

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(A::Error::custom(format!("the object has the key {key:?} twice")));
            }
            let value = map.next_value_seed(Self)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

/// Converts TOML to JSON. Values that JSON does not have are errors. The TOML parser limits the depth.
pub(super) fn from_toml(table: &DeTable<'_>) -> Result<Value, SchemaError> {
    let members = table.iter().map(|(key, value)| Ok((key.get_ref().to_string(), from_toml_value(value.get_ref())?)));
    members.collect::<Result<_, _>>().map(Value::Object)
}

fn from_toml_value(value: &DeValue<'_>) -> Result<Value, SchemaError> {
    let no = |what| SchemaError::NotJson { what };
    match value {
        DeValue::String(text) => Ok(Value::from(text.as_ref())),
        DeValue::Boolean(flag) => Ok(Value::from(*flag)),
        DeValue::Integer(integer) => {
            // TOML also writes integers in hexadecimal, octal and binary.
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            number.map(Value::from).map_err(|_| no("an integer beyond 64 bits"))
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            number.map(Value::Number).ok_or_else(|| no("inf or nan"))
        }
        DeValue::Datetime(_) => Err(no("a date without quotes")),
        DeValue::Array(items) => items.iter().map(|item| from_toml_value(item.get_ref())).collect(),
        DeValue::Table(table) => from_toml(table),
    }
}
