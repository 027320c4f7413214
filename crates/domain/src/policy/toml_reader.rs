//! Reads TOML. Every error has a line, a column and advice.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{PolicyCode, PolicyError, PolicyTextSpan};

/// A table in which unknown keys are errors.
pub(super) struct TomlSection<'t> {
    text: &'t str,
    name: String,
    place: PolicyTextSpan<'t>,
    entries: &'t DeTable<'t>,
}

/// A value with its name and place.
pub(super) struct TomlItem<'t> {
    text: &'t str,
    name: String,
    place: PolicyTextSpan<'t>,
    value: &'t DeValue<'t>,
}

/// Parses the text and returns the first mistake.
pub(super) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, PolicyError> {
    DeTable::parse(text).map_err(|error| {
        let place = PolicyTextSpan::new(text, &error.span().unwrap_or_default());
        place.error(PolicyCode::Syntax, format!("not TOML: {}", error.message()))
    })
}

impl<'t> TomlSection<'t> {
    pub(super) fn root(text: &'t str, table: &'t Spanned<DeTable<'t>>) -> Self {
        // The root has no position of its own, so a missing key is reported at the start of the text.
        Self { text, name: String::new(), place: PolicyTextSpan::new(text, &(0..0)), entries: table.get_ref() }
    }

    /// Rejects every key that is not `known`.
    pub(super) fn expect_keys(&self, known: &[&str]) -> Result<(), PolicyError> {
        let mut strangers: Vec<_> =
            self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref())).collect();
        // The TOML parser sorts a table by its keys, and the author expects the first mistake in the text.
        strangers.sort_by_key(|key| key.span().start);
        let Some(key) = strangers.first() else { return Ok(()) };
        let (place, name) = (PolicyTextSpan::new(self.text, &key.span()), self.child_name(key.get_ref()));
        let message = format!("unknown key `{name}`: take it out; known here are {}", known.join(", "));
        Err(place.error(PolicyCode::UnknownKey, message))
    }

    fn child_name(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    pub(super) fn get(&self, key: &str) -> Option<TomlItem<'t>> {
        self.entries.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| TomlItem {
            text: self.text,
            name: self.child_name(key),
            place: PolicyTextSpan::new(self.text, &value.span()),
            value: value.get_ref(),
        })
    }

    pub(super) fn require(&self, key: &str, advice: &str) -> Result<TomlItem<'t>, PolicyError> {
        self.get(key).ok_or_else(|| {
            let name = self.child_name(key);
            self.place.error(PolicyCode::Missing, format!("`{name}` is missing: add {advice}"))
        })
    }

    /// Returns the members as (key, position of the key, value), at most `max` of them.
    pub(super) fn members(&self, max: usize) -> Result<Vec<(&'t str, PolicyTextSpan<'t>, TomlItem<'t>)>, PolicyError> {
        if self.entries.len() > max {
            let message = format!("`{}` has {} entries, at most {max} are taken", self.name, self.entries.len());
            return Err(self.place.error(PolicyCode::TooLarge, message));
        }
        let member = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
            let key_text: &'t str = Spanned::<std::borrow::Cow<'t, str>>::get_ref(key);
            let item = TomlItem {
                text: self.text,
                name: self.child_name(key_text),
                place: PolicyTextSpan::new(self.text, &value.span()),
                value: value.get_ref(),
            };
            (key_text, PolicyTextSpan::new(self.text, &key.span()), item)
        };
        Ok(self.entries.iter().map(member).collect())
    }
}

impl<'t> TomlItem<'t> {
    pub(super) fn error(&self, code: PolicyCode, message: impl Into<String>) -> PolicyError {
        self.place.error(code, message)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn value(&self) -> &'t DeValue<'t> {
        self.value
    }

    fn wrong_type(&self, wanted: &str) -> PolicyError {
        self.error(PolicyCode::WrongType, format!("`{}` must be {wanted}", self.name))
    }

    pub(super) fn text(&self) -> Result<&'t str, PolicyError> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a text in quotes"))
    }

    /// Returns one line of text of at most `max` characters.
    pub(super) fn line(&self, max: usize) -> Result<String, PolicyError> {
        let text = self.text()?;
        let bad = |why: String| Err(self.error(PolicyCode::BadValue, format!("`{}` {why}", self.name)));
        match text {
            _ if text.trim().is_empty() => bad("is empty: say something".to_owned()),
            // Lists and errors show the text in one line.
            _ if text.chars().any(char::is_control) => bad("must be one line".to_owned()),
            _ if text.chars().count() > max => bad(format!("is longer than {max} characters")),
            _ => Ok(text.to_owned()),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, PolicyError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    pub(super) fn section(&self) -> Result<TomlSection<'t>, PolicyError> {
        let entries = self.value.as_table().ok_or_else(|| self.wrong_type("a table"))?;
        Ok(TomlSection { text: self.text, name: self.name.clone(), place: self.place, entries })
    }

    /// Returns the items of an array, at most `max` of them.
    pub(super) fn items(&self, max: usize) -> Result<Vec<TomlItem<'t>>, PolicyError> {
        let items = self.value.as_array().ok_or_else(|| self.wrong_type("a list"))?;
        if items.len() > max {
            let message = format!("`{}` has {} items, at most {max} are taken", self.name, items.len());
            return Err(self.error(PolicyCode::TooLarge, message));
        }
        let item = |(index, value): (usize, &'t Spanned<DeValue<'t>>)| TomlItem {
            text: self.text,
            name: format!("{}[{index}]", self.name),
            place: PolicyTextSpan::new(self.text, &value.span()),
            value: value.get_ref(),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn count(&self, range: RangeInclusive<u32>) -> Result<u32, PolicyError> {
        let integer = self.value.as_integer().ok_or_else(|| self.wrong_type("a whole number"))?;
        // TOML also has binary, octal and hexadecimal integers.
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.filter(|it| range.contains(it)).ok_or_else(|| {
            let message = format!("`{}` must be a number from {} to {}", self.name, range.start(), range.end());
            self.error(PolicyCode::BadValue, message)
        })
    }

    /// Reads an integer from 0 up to the limit of a row.
    pub(super) fn whole(&self, max: u64) -> Result<u64, PolicyError> {
        let integer = self.value.as_integer().ok_or_else(|| self.wrong_type("a whole number"))?;
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.filter(|it| *it <= max).ok_or_else(|| {
            let message = format!("`{}` must be a number from 0 to {max}", self.name);
            self.error(PolicyCode::BadValue, message)
        })
    }

    /// Returns the text of a number.
    pub(super) fn number(&self) -> Result<&'t str, PolicyError> {
        // The text is used as a number of JSON, which has no other radix.
        let integer = self.value.as_integer().filter(|it| it.radix() == 10).map(toml::de::DeInteger::as_str);
        let float = self.value.as_float().map(toml::de::DeFloat::as_str);
        integer.or(float).ok_or_else(|| self.wrong_type("a number"))
    }

    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Result<Duration, PolicyError> {
        let text = self.text()?;
        let (low, high) = (words(*range.start()), words(*range.end()));
        let advice =
            format!("`{}` must be a duration such as \"30s\", \"10m\" or \"24h\", from {low} to {high}", self.name);
        let duration = parse_duration(text).filter(|it| range.contains(it));
        duration.ok_or_else(|| self.error(PolicyCode::BadValue, advice))
    }
}

/// Reads an integer with one unit: `30s`, `10m`, `24h`.
fn parse_duration(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds_per_unit: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    // The unit is one ASCII byte, so the rest ends at a character.
    let digits = &text[..text.len() - 1];
    // `parse` would also accept a plus sign.
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = plain.then(|| digits.parse().ok()).flatten()?;
    number.checked_mul(seconds_per_unit).map(Duration::from_secs)
}

fn words(duration: Duration) -> String {
    match duration.as_secs() {
        secs if secs % 3600 == 0 => format!("{}h", secs / 3600),
        secs if secs % 60 == 0 => format!("{}m", secs / 60),
        secs => format!("{secs}s"),
    }
}
