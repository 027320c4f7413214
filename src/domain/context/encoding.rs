//! Counting tokens, as models do: by vocabularies that are part of the program, so that no network is needed.

use serde::{Deserialize, Serialize};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// So many characters are counted at once.
const PIECE_CHARS: usize = 16_384;

/// The tokenizer that counts tokens. The vendor of a model documents the one it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// That of the newer models.
    #[default]
    O200kBase,
    /// That of the ones before.
    Cl100kBase,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: &'static [Self] = &[Self::O200kBase, Self::Cl100kBase];

    /// The word on the wire, and in policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
        }
    }

    /// How many tokens a text is. What looks like a control token of a model is counted as the text that it is.
    ///
    /// A long text is counted in pieces, and is the sum of them: the library gives up, and panics, on a run of a million
    /// blanks, which an agent could write.
    pub fn count(self, text: &str) -> u64 {
        let (mut rest, mut sum) = (text, 0_usize);
        while !rest.is_empty() {
            let end = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            sum = sum.saturating_add(self.tokenizer().count_ordinary(piece));
            rest = after;
        }
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    fn tokenizer(self) -> &'static CoreBPE {
        match self {
            Self::O200kBase => o200k_base_singleton(),
            Self::Cl100kBase => cl100k_base_singleton(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_many_tokens_as_their_vocabulary_says() {
        // As the vocabularies' makers count them, in what they publish about counting.
        let table =
            [("", 0, 0), ("antidisestablishmentarianism", 6, 6), ("2 + 2 = 4", 7, 7), ("お誕生日おめでとう", 8, 9)];
        for (text, o200k, cl100k) in table {
            assert_eq!(
                (Encoding::O200kBase.count(text), Encoding::Cl100kBase.count(text)),
                (o200k, cl100k),
                "{text:?}"
            );
        }
    }

    #[test]
    fn no_text_that_a_state_can_hold_takes_long_or_fails() {
        let long = 1 << 20;
        for unit in [" ", "\n", "a", "\u{e9}", " a", "1", "'s", "\r\n ", "#", "\u{65e5}"] {
            let text = unit.repeat(long / unit.len());
            for encoding in Encoding::ALL {
                let count = encoding.count(&text);
                assert!(count > 0 && count <= text.len() as u64, "{unit:?}");
            }
        }
    }

    #[test]
    fn each_encoding_has_the_name_that_it_is_written_by() {
        for encoding in Encoding::ALL {
            assert_eq!(serde_json::json!(encoding), serde_json::json!(encoding.as_str()));
        }
    }
}
