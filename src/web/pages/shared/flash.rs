//! What was done a moment ago: a word in the address, which is one of those that a page knows, or nothing.

use serde::Deserialize;

use super::layout::{FlashNotice, Tone};
use crate::service::error::{Error, Result};

/// `?done=`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FlashQuery {
    done: String,
}

impl FlashQuery {
    /// What a page says of it. Nothing that stands in an address is repeated on the page.
    pub fn notice(&self, known: &[(&str, Tone, &str)]) -> Option<FlashNotice> {
        let found = known.iter().find(|it| it.0 == self.done);
        found.map(|(_, tone, words)| FlashNotice { tone: *tone, words: (*words).to_owned() })
    }
}

/// What is said above a form that was not taken; whatever else went wrong is a page of its own.
pub fn refusal(error: Error) -> Result<FlashNotice> {
    let words = match error {
        Error::Invalid { detail, .. } => detail,
        Error::Exists(why) | Error::WrongState(why) => why.to_owned(),
        other => return Err(other),
    };
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let words = format!("{first}{}. Nothing was changed.", letters.as_str().trim_end_matches('.'));
    Ok(FlashNotice { tone: Tone::Bad, words })
}
