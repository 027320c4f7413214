//! JSON Pointers (RFC 6901): paths in a value.

use std::borrow::{Borrow, Cow};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "openapi")]
use crate::primitives::openapi_schema::StringFormat;
use crate::primitives::openapi_schema::has_form;

#[cfg(test)]
mod tests;

/// A path in a value. Each path has only one text, so comparing texts compares paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

/// Why a text is not a JSON Pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// In RFC 6901 the empty text is the whole value, and every token follows a slash.
    #[error("a JSON Pointer is empty or begins with a slash")]
    NoSlash,
    /// `~` is valid only in `~0` and `~1`.
    #[error("in a JSON Pointer, ~ is written ~0 and only ~0 and ~1 are escapes")]
    Escape,
}

has_form!(
    Pointer,
    StringFormat {
        what: "a JSON Pointer (RFC 6901), empty for the whole value",
        pattern: "^(/([^~/]|~[01])*)*$",
        chars: (0, usize::MAX),
        example: "/payment/amount",
    }
);

impl Pointer {
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Returns the path of a member below this path.
    #[must_use]
    pub fn child(&self, key: &str) -> Self {
        let mut text = String::with_capacity(self.0.len() + 1 + key.len());
        text.push_str(&self.0);
        push_token(&mut text, key);
        Self(text)
    }

    /// Returns the path of an item below this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut text = String::with_capacity(self.0.len() + 1 + INDEX_DIGITS_MAX);
        text.push_str(&self.0);
        text.push('/');
        push_index(&mut text, index);
        Self(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this names the whole value.
    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the unescaped tokens from the top down.
    pub fn tokens(&self) -> impl Iterator<Item = Cow<'_, str>> {
        // A pointer is empty or begins with a slash, so the text before the first slash is not a token.
        self.0.split('/').skip(1).map(unescape)
    }

    /// Returns whether `other` is this place or below it.
    pub fn covers(&self, other: &Self) -> bool {
        match other.0.strip_prefix(self.0.as_str()) {
            // Without the slash, `/a` would cover `/ab`.
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Returns whether `other` is this place, above it or below it.
    pub fn touches(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }

    /// Returns the texts of this path and of every path above it, nearest first. Lookups in sets of paths need no new
    /// path then.
    pub fn at_and_above(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.as_str()), |it| it.rsplit_once('/').map(|(above, _)| above))
    }

    /// Returns the path above, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.split_last().map(|(parent, _)| parent)
    }

    /// Whether two pointers differ in indexes of lists at most.
    pub fn is_same_but_indexes(&self, other: &Self) -> bool {
        let is_index = |token: &str| token.bytes().all(|it| it.is_ascii_digit());
        let alike = |(a, b): (Cow<'_, str>, Cow<'_, str>)| a == b || (is_index(&a) && is_index(&b));
        self.tokens().count() == other.tokens().count() && self.tokens().zip(other.tokens()).all(alike)
    }

    /// Returns the path with every index of a list replaced by `-`, which is the same for all items of the list.
    #[must_use]
    pub fn without_indexes(&self) -> Self {
        let is_index = |token: &str| token.bytes().all(|it| it.is_ascii_digit());
        self.tokens().fold(Self::root(), |at, token| at.child(if is_index(&token) { "-" } else { &token }))
    }

    /// Returns the value at this path.
    pub fn resolve<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut at = value;
        for token in self.tokens() {
            at = match at {
                Value::Object(members) => members.get(token.as_ref())?,
                Value::Array(items) => items.get(array_index(&token)?)?,
                _ => return None,
            };
        }
        Some(at)
    }

    /// Returns the value at this path, to be changed in place.
    pub(crate) fn resolve_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        let mut at = value;
        for token in self.tokens() {
            at = match at {
                Value::Object(members) => members.get_mut(token.as_ref())?,
                Value::Array(items) => items.get_mut(array_index(&token)?)?,
                _ => return None,
            };
        }
        Some(at)
    }

    /// Returns the path above and the last token, or `None` for the root.
    pub(crate) fn split_last(&self) -> Option<(Self, Cow<'_, str>)> {
        let (parent, token) = self.0.rsplit_once('/')?;
        Some((Self(parent.to_owned()), unescape(token)))
    }
}

/// Pointers are compared, ordered and hashed by their text.
impl Borrow<str> for Pointer {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(PointerError::NoSlash);
        }
        let mut after_tildes = text.split('~').skip(1);
        if after_tildes.any(|it| !it.starts_with(['0', '1'])) {
            return Err(PointerError::Escape);
        }
        Ok(Self(text))
    }
}

impl TryFrom<&str> for Pointer {
    type Error = PointerError;

    fn try_from(text: &str) -> Result<Self, PointerError> {
        Self::try_from(text.to_owned())
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads an index by RFC 6901: no sign, no leading zero.
pub fn array_index(token: &str) -> Option<usize> {
    // Pointers are compared by text, so an item must not have a second spelling.
    let plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|it| it.is_ascii_digit()));
    if plain { token.parse().ok() } else { None }
}

/// Returns how many bytes a key takes in a pointer, with its slash.
pub(super) fn token_len(key: &str) -> usize {
    1 + key.len() + key.bytes().filter(|it| matches!(it, b'~' | b'/')).count()
}

fn push_token(text: &mut String, token: &str) {
    text.push('/');
    let mut plain = token;
    while let Some(at) = plain.find(['~', '/']) {
        text.push_str(&plain[..at]);
        text.push_str(if plain.as_bytes()[at] == b'~' { "~0" } else { "~1" });
        plain = &plain[at + 1..];
    }
    text.push_str(plain);
}

/// Digits of the largest index.
const INDEX_DIGITS_MAX: usize = 20;

/// Appends an index. Generic formatting would cost more than the rest of a step.
fn push_index(text: &mut String, index: usize) {
    let (mut digits, mut at, mut rest) = ([0; INDEX_DIGITS_MAX], INDEX_DIGITS_MAX, index);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.push_str(std::str::from_utf8(&digits[at..]).expect("digits are ASCII"));
}

fn unescape(token: &str) -> Cow<'_, str> {
    // RFC 6901 resolves `~1` first, so that `~01` becomes `~1`.
    if token.contains('~') { Cow::Owned(token.replace("~1", "/").replace("~0", "~")) } else { Cow::Borrowed(token) }
}

/// Builds pointers during a walk. It reuses one text, so that only the pointers that are needed are copied.
#[derive(Debug, Default)]
pub(crate) struct PointerBuilder(String);

impl PointerBuilder {
    /// Starts a walk at `pointer`.
    pub(super) fn at(pointer: &Pointer) -> Self {
        Self(pointer.0.clone())
    }

    pub(crate) fn pointer(&self) -> Pointer {
        Pointer(self.0.clone())
    }

    /// Moves one level down, to a key. Returns the length that `leave` needs to move back up.
    pub(crate) fn enter_key(&mut self, key: &str) -> usize {
        let above = self.0.len();
        push_token(&mut self.0, key);
        above
    }

    /// Moves one level down, to an index. Returns the length that `leave` needs to move back up.
    pub(crate) fn enter_index(&mut self, index: usize) -> usize {
        let above = self.0.len();
        self.0.push('/');
        push_index(&mut self.0, index);
        above
    }

    pub(crate) fn leave(&mut self, above: usize) {
        self.0.truncate(above);
    }
}
