//! Notices after a redirect. The URL has a code, and the page shows its own text for a known code.

use countersign_service::error::{Error, Result};
use serde::Deserialize;

use super::layout::{FlashNotice, Tone};

/// `?done=`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FlashQuery {
    done: String,
}

impl FlashQuery {
    /// Returns the page's notice for the code. Text of the URL is never shown, because an attacker can write it.
    pub fn notice(&self, known: &[(&str, Tone, &str)]) -> Option<FlashNotice> {
        // Only known codes have a notice, because anyone can make a link with text in its query.
        let found = known.iter().find(|it| it.0 == self.done);
        found.map(|(_, tone, words)| FlashNotice { tone: *tone, words: (*words).to_owned() })
    }
}

/// Returns the notice above a rejected form. Other errors are returned and get their own page.
pub fn refusal(error: Error) -> Result<FlashNotice> {
    let words = match error {
        Error::Invalid { detail, .. } => detail,
        Error::Exists(why) | Error::WrongState(why) => why.to_owned(),
        // Other errors may have changed something or need another next step, so they get an error page.
        other => return Err(other),
    };
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let words = format!("{first}{}. Nothing was changed.", letters.as_str().trim_end_matches('.'));
    Ok(FlashNotice { tone: Tone::Bad, words })
}
