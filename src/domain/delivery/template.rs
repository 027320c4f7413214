//! Requests that an administrator wrote, with gaps that the gateway fills. What goes into a gap stays in it: in a body it
//! is a whole JSON value, in an address a whole part of the path, percent-encoded; and no other part of an address, so
//! that nothing that a host or an agent chose leads to another place.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::decision_payload::DecisionPayload;
use super::preflight::PreflightResult;
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::EncryptedValue;

#[cfg(test)]
mod tests;

/// A body is a few names around a decision.
pub const TEMPLATE_BYTES_MAX: usize = 16 * 1024;

/// What is sent where a review ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    pub body: Value,
    /// What the address and the body cannot do without.
    pub needs: BTreeSet<Placeholder>,
    /// What is looked at before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<PreflightTemplate>,
}

/// What is looked at before something is sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreflightTemplate {
    /// Where, hidden as the endpoint's own address is.
    pub url: EncryptedValue,
    /// What others may see of it: the endpoint's own, since its headers go along.
    pub origin: String,
    /// What that address cannot do without.
    pub needs: BTreeSet<Placeholder>,
    pub pointer: Pointer,
    /// What stands there as long as the decision is waited for.
    pub waiting: Value,
}

/// What can be put into a gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placeholder {
    Answer,
    Approved,
    Decision,
    Digest,
    Event,
    Flow,
    Interrupt,
    Review,
    Thread,
}

/// Why something is no template.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("`{{{0}}}` is no placeholder; there are {all}", all = Placeholder::ALL.map(Placeholder::as_str).join(", "))]
    Unknown(String),
    /// It has something beside it.
    #[error("`{{{0}}}` stands beside something else; a placeholder is a whole text, or a whole part of a path")]
    NotAlone(String),
    #[error("`{{{0}}}` cannot be a name or a part of a path: it is no text")]
    NoText(&'static str),
    /// An address has it where it would lead elsewhere.
    #[error("in an address placeholders stand in the path only")]
    NotInPath,
    #[error("a body has {TEMPLATE_BYTES_MAX} bytes at most")]
    TooLarge,
    /// It would be looked at elsewhere, with the headers that are for here.
    #[error(
        "the look goes to the same scheme, host and port as what is sent then: the endpoint's own headers go along"
    )]
    Elsewhere,
}

impl Placeholder {
    pub const ALL: [Self; 9] = [
        Self::Answer,
        Self::Approved,
        Self::Decision,
        Self::Digest,
        Self::Event,
        Self::Flow,
        Self::Interrupt,
        Self::Review,
        Self::Thread,
    ];

    /// As it stands between braces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Approved => "approved",
            Self::Decision => "decision",
            Self::Digest => "digest",
            Self::Event => "event",
            Self::Flow => "flow",
            Self::Interrupt => "interrupt",
            Self::Review => "review",
            Self::Thread => "thread",
        }
    }

    /// What is put in as a value.
    fn value(self, decided: &DecisionPayload) -> Value {
        match self {
            Self::Answer => decided.answer.clone(),
            Self::Approved => json!(decided.approved),
            text => json!(text.text(decided)),
        }
    }

    /// What is put in as a text, if it is one and there.
    fn text(self, decided: &DecisionPayload) -> Option<&str> {
        match self {
            Self::Answer | Self::Approved => None,
            Self::Decision => Some(&decided.decision),
            Self::Digest => Some(&decided.digest),
            Self::Event => Some(decided.event.as_str()),
            Self::Flow => Some(&decided.flow),
            Self::Interrupt => decided.interrupt.as_deref(),
            Self::Review => Some(&decided.review),
            Self::Thread => decided.thread.as_deref(),
        }
    }

    fn as_name(self) -> Result<Self, TemplateError> {
        match self {
            Self::Answer | Self::Approved => Err(TemplateError::NoText(self.as_str())),
            text => Ok(text),
        }
    }

    /// The placeholder that a text is, if it is one. One that is none of ours, or not the whole text, is refused.
    fn of(text: &str) -> Result<Option<Self>, TemplateError> {
        let Some((at, name)) = first_braced(text) else { return Ok(None) };
        let known = Self::ALL.into_iter().find(|it| it.as_str() == name);
        let known = known.ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
        match at == 0 && text.len() == name.len() + 2 {
            true => Ok(Some(known)),
            false => Err(TemplateError::NotAlone(name.to_owned())),
        }
    }
}

/// The first word in braces, and where its brace stands.
fn first_braced(text: &str) -> Option<(usize, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let word = text[at + 1..].split_once('}')?.0;
        let is_word =
            !word.is_empty() && word.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'));
        is_word.then_some((at, word))
    })
}

impl Template {
    /// The same, sent to this address.
    pub fn at(self, url: &Url) -> Result<Self, TemplateError> {
        if self.look.as_ref().is_some_and(|it| it.origin != url.origin().ascii_serialization()) {
            return Err(TemplateError::Elsewhere);
        }
        let needs = needs_of_address(url)?.into_iter().chain(needs_of_body(&self.body)?).collect();
        Ok(Self { needs, ..self })
    }

    /// Whether a decision has all that is needed.
    pub fn reaches(&self, decided: &DecisionPayload) -> bool {
        let look = self.look.iter().flat_map(|it| &it.needs);
        self.needs.iter().chain(look).all(|it| it.text(decided).is_some())
    }

    /// The body for a decision; nothing if two of its names would be the same.
    pub fn filled(&self, decided: &DecisionPayload) -> Option<Value> {
        filled(&self.body, decided)
    }
}

impl PreflightTemplate {
    pub fn seen(&self, answer: &[u8]) -> Result<(), PreflightResult> {
        let answer: Value = serde_json::from_slice(answer).map_err(|_| PreflightResult::Unclear)?;
        match self.pointer.resolve(&answer) {
            None => Err(PreflightResult::Unclear),
            Some(value) if *value == self.waiting => Ok(()),
            Some(_) => Err(PreflightResult::NotWaiting),
        }
    }
}

/// What an address has beside its gaps: from them nobody learns more than they were sent.
pub fn plain_parts(address: &str) -> impl Iterator<Item = &str> {
    let first = address.split("%7B").take(1);
    first.chain(address.split("%7B").skip(1).map(|it| it.split_once("%7D").map_or(it, |(_, rest)| rest)))
}

fn filled(value: &Value, decided: &DecisionPayload) -> Option<Value> {
    match value {
        Value::String(text) => match Placeholder::of(text).ok()? {
            Some(it) => Some(it.value(decided)),
            None => Some(value.clone()),
        },
        Value::Array(items) => items.iter().map(|it| filled(it, decided)).collect(),
        Value::Object(members) => {
            let mut done = Map::new();
            for (name, value) in members {
                let name = match Placeholder::of(name).ok()? {
                    Some(it) => it.text(decided)?,
                    None => name,
                };
                // What somebody else chose must not take the place of another member.
                if done.insert(name.to_owned(), filled(value, decided)?).is_some() {
                    return None;
                }
            }
            Some(Value::Object(done))
        }
        plain => Some(plain.clone()),
    }
}

/// What a body needs to have its names, or what is wrong with it.
pub fn needs_of_body(body: &Value) -> Result<BTreeSet<Placeholder>, TemplateError> {
    if canonical(body).len() > TEMPLATE_BYTES_MAX {
        return Err(TemplateError::TooLarge);
    }
    let mut needs = BTreeSet::new();
    look_through(body, &mut needs)?;
    Ok(needs)
}

fn look_through(value: &Value, needs: &mut BTreeSet<Placeholder>) -> Result<(), TemplateError> {
    match value {
        Value::String(text) => Placeholder::of(text).map(drop),
        Value::Array(items) => items.iter().try_for_each(|it| look_through(it, needs)),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            needs.extend(Placeholder::of(name)?.map(Placeholder::as_name).transpose()?);
            look_through(value, needs)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// What an address needs, or what is wrong with it. An address is read by the URL standard first, which writes the braces
/// of a path as `%7B` and `%7D`.
pub fn needs_of_address(url: &Url) -> Result<BTreeSet<Placeholder>, TemplateError> {
    let elsewhere = [url.host_str(), url.query()];
    if elsewhere.into_iter().flatten().any(|it| first_braced(&braced(it)).is_some()) {
        return Err(TemplateError::NotInPath);
    }
    let parts = url.path().split('/').map(|it| Placeholder::of(&braced(it))?.map(Placeholder::as_name).transpose());
    let needs: Result<Vec<_>, _> = parts.collect();
    Ok(needs?.into_iter().flatten().collect())
}

/// The address for a decision; nothing if a part would not stay one part.
pub fn filled_address(url: &Url, decided: &DecisionPayload) -> Option<Url> {
    let part = |part: &str| match Placeholder::of(&braced(part)).ok()? {
        Some(it) => it.text(decided).and_then(encoded),
        None => Some(part.to_owned()),
    };
    let path: Option<Vec<String>> = url.path().split('/').map(part).collect();
    let mut filled = url.clone();
    filled.set_path(&path?.join("/"));
    Some(filled)
}

/// An address as people write it.
pub fn braced(text: &str) -> String {
    text.replace("%7B", "{").replace("%7b", "{").replace("%7D", "}").replace("%7d", "}")
}

/// A part of a path that is this text and nothing else; one of dots would lead up.
fn encoded(text: &str) -> Option<String> {
    if matches!(text, "" | "." | "..") {
        return None;
    }
    let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_' | b'~');
    Some(text.bytes().map(|it| if plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") }).collect())
}
