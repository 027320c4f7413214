//! Counts tokens as models do. The vocabularies are part of the program, so no network is needed.

use serde::{Deserialize, Serialize};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

use crate::primitives::named_enum::named_json_enum;

/// Number of characters that are counted at once.
const PIECE_CHARS: usize = 16_384;

named_json_enum! {
    /// The token encoding. The provider of a model documents which one the model uses.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Encoding {
        /// The encoding of newer models.
        #[default]
        O200kBase = "o200k_base",
        /// The encoding of older models.
        Cl100kBase = "cl100k_base",
    }
}

impl Encoding {
    /// Counts the tokens of a text. Text that looks like a control token of a model is counted as text.
    ///
    /// A long text is counted in pieces, and its count is their sum. The library panics on a run of a million blanks,
    /// which an agent could send.
    pub fn count(self, text: &str) -> u64 {
        let (mut rest, mut sum) = (text, 0_usize);
        while !rest.is_empty() {
            let end = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            // The cut may split a token, so the count can be slightly higher.
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
    fn token_counts_match_the_vocabulary() {
        // The makers of the vocabularies publish this way of counting.
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
    fn no_text_of_a_state_is_slow_or_fails() {
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
    fn each_encoding_has_its_wire_name() {
        for encoding in Encoding::ALL {
            assert_eq!(serde_json::json!(encoding), serde_json::json!(encoding.as_str()));
        }
    }
}
