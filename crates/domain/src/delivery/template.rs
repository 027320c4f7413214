//! Request templates of administrators, with placeholders that the gateway fills.
//!
//! A value cannot leave its placeholder. In a body it is a whole JSON value. In a URL it is one percent-encoded path
//! segment, and other parts of a URL have no placeholders. So a host application or an agent cannot redirect the
//! request.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::decision_payload::DecisionPayload;
use super::preflight::PreflightResult;
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::keys::EncryptedValue;
use crate::primitives::named_enum::named_json_enum;

#[cfg(test)]
mod tests;

/// The size limit of a body, which has only a few members around a decision.
pub const TEMPLATE_BYTES_MAX: usize = 16 * 1024;

/// The request that is sent when a review ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    pub body: Value,
    /// The placeholders of the URL and of the body that must have a value.
    pub needs: BTreeSet<Placeholder>,
    /// The preflight request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<PreflightTemplate>,
}

/// The preflight request of a template.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreflightTemplate {
    /// The URL, encrypted like the endpoint's own.
    pub url: EncryptedValue,
    /// The origin. It must be the endpoint's own, because the request carries the endpoint's headers.
    pub origin: String,
    /// The placeholders of the URL that must have a value.
    pub needs: BTreeSet<Placeholder>,
    pub pointer: Pointer,
    /// The value at `pointer` while the decision is awaited.
    pub waiting: Value,
}

named_json_enum! {
    /// The values that a placeholder can insert.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    pub enum Placeholder {
        Answer = "answer",
        Approved = "approved",
        Decision = "decision",
        Digest = "digest",
        Event = "event",
        Flow = "flow",
        Interrupt = "interrupt",
        Review = "review",
        Thread = "thread",
    }
}

/// The reason why a template is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("unknown placeholder `{{{0}}}`: use one of {all}", all = Placeholder::ALL.map(Placeholder::as_str).join(", "))]
    Unknown(String),
    /// The placeholder is not the whole text.
    #[error("`{{{0}}}` has text beside it: a placeholder must be a whole string or a whole path segment")]
    NotAlone(String),
    #[error("`{{{0}}}` cannot be a member name or a path segment, because its value is not a string")]
    NoText(&'static str),
    /// A placeholder in the host or the query could redirect the request.
    #[error("placeholders are allowed only in the path of a URL; remove those in the host or the query")]
    NotInPath,
    #[error("the body is too large: at most {TEMPLATE_BYTES_MAX} bytes")]
    TooLarge,
    /// The preflight request would send the endpoint's headers to another server.
    #[error(
        "the status request must use the endpoint's scheme, host and port, because it carries the endpoint's headers"
    )]
    Elsewhere,
}

impl Placeholder {
    /// Returns the inserted JSON value.
    fn value(self, decided: &DecisionPayload) -> Value {
        match self {
            Self::Answer => decided.answer.clone(),
            Self::Approved => json!(decided.approved),
            text => json!(text.text(decided)),
        }
    }

    /// Returns the inserted text, if the value exists and is a text.
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

    /// Returns the placeholder of a text, if it is one. An unknown placeholder, or one with text around it, is an
    /// error.
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

/// Returns the first word in braces and the position of its brace.
fn first_braced(text: &str) -> Option<(usize, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let word = text[at + 1..].split_once('}')?.0;
        let is_word =
            !word.is_empty() && word.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'));
        is_word.then_some((at, word))
    })
}

impl Template {
    /// Returns the template for a URL.
    pub fn at(self, url: &Url) -> Result<Self, TemplateError> {
        // The preflight request carries the endpoint's headers, which may contain secrets.
        if self.look.as_ref().is_some_and(|it| it.origin != url.origin().ascii_serialization()) {
            return Err(TemplateError::Elsewhere);
        }
        let needs = needs_of_address(url)?.into_iter().chain(needs_of_body(&self.body)?).collect();
        Ok(Self { needs, ..self })
    }

    /// Checks that a decision has a value for every required placeholder.
    pub fn reaches(&self, decided: &DecisionPayload) -> bool {
        let look = self.look.iter().flat_map(|it| &it.needs);
        self.needs.iter().chain(look).all(|it| it.text(decided).is_some())
    }

    /// Returns the body for a decision, or `None` if two of its members would have the same name.
    pub fn filled(&self, decided: &DecisionPayload) -> Option<Value> {
        filled(&self.body, decided)
    }
}

impl PreflightTemplate {
    pub fn seen(&self, answer: &[u8]) -> Result<(), PreflightResult> {
        let answer: Value = serde_json::from_slice(answer).map_err(|_| PreflightResult::Unclear)?;
        match self.pointer.resolve(&answer) {
            // A missing value can come from a wrong pointer, so it proves nothing.
            None => Err(PreflightResult::Unclear),
            Some(value) if *value == self.waiting => Ok(()),
            Some(_) => Err(PreflightResult::NotWaiting),
        }
    }
}

/// Returns the parts of a URL without its placeholders. They reveal nothing that a receiver was not sent.
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
                // A value that a host application or agent chose must not replace another member.
                if done.insert(name.to_owned(), filled(value, decided)?).is_some() {
                    return None;
                }
            }
            Some(Value::Object(done))
        }
        plain => Some(plain.clone()),
    }
}

/// Returns the placeholders that the names of a body need.
pub fn needs_of_body(body: &Value) -> Result<BTreeSet<Placeholder>, TemplateError> {
    // The canonical length does not depend on white space.
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

/// Returns the placeholders of a URL. The URL parser runs first and writes the braces of a path as `%7B` and `%7D`.
pub fn needs_of_address(url: &Url) -> Result<BTreeSet<Placeholder>, TemplateError> {
    let elsewhere = [url.host_str(), url.query()];
    if elsewhere.into_iter().flatten().any(|it| first_braced(&braced(it)).is_some()) {
        return Err(TemplateError::NotInPath);
    }
    let parts = url.path().split('/').map(|it| Placeholder::of(&braced(it))?.map(Placeholder::as_name).transpose());
    let needs: Result<Vec<_>, _> = parts.collect();
    Ok(needs?.into_iter().flatten().collect())
}

/// Returns the URL for a decision, or `None` if a value would not stay one path segment.
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

/// Returns the URL with braces, as people write it.
pub fn braced(text: &str) -> String {
    // The URL parser keeps escapes as they were written, so both cases occur.
    text.replace("%7B", "{").replace("%7b", "{").replace("%7D", "}").replace("%7d", "}")
}

/// Encodes a text as one path segment. Segments of dots are refused, because they would change the path.
fn encoded(text: &str) -> Option<String> {
    // The URL parser would resolve these segments and remove others.
    if matches!(text, "" | "." | "..") {
        return None;
    }
    let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_' | b'~');
    Some(text.bytes().map(|it| if plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") }).collect())
}
