//! Digests with a domain tag, so that a hash of one kind is never valid as another.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::keys::ThreadSecret;
#[cfg(feature = "openapi")]
use crate::primitives::openapi_schema::StringFormat;
use crate::primitives::openapi_schema::has_form;

/// Kind of hashed content. Its text is part of the hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    Leaf,
    Object,
    Array,
    /// Statement of a transition.
    Transition,
    Policy,
    /// Origin of a branch, for its thread name.
    Branch,
    Payload,
    /// Truncated parts of an envelope.
    Truncated,
    Rationale,
    /// Salted arguments of a tool call.
    Arguments,
    Comment,
    Patch,
    Proposal,
    /// Approval request of an agent instance.
    Submission,
    Step,
    /// Content of a held change.
    Effect,
    Event,
    Amendment,
    /// Interrupt of a host application.
    Interrupt,
    /// Body of a post that a host application signed.
    Post,
    /// Challenge that a passkey signs for a vote.
    Vote,
    /// Challenge for a vote on a policy change request.
    PolicyVote,
    /// Challenge for a vote on an interrupt.
    InterruptVote,
    /// Statement of a vote with the assertion over it.
    Evidence,
    /// Manifest of an episode, without its signature.
    Episode,
    /// Terms that an episode begins with.
    EpisodeTerms,
    /// Event that an agent added to an episode.
    EpisodeEvent,
    /// Files of an imported episode.
    Imported,
}

impl Tag {
    const fn text(self) -> &'static str {
        match self {
            Self::Leaf => "countersign.leaf.v1",
            Self::Object => "countersign.object.v1",
            Self::Array => "countersign.array.v1",
            Self::Transition => "countersign.transition.v1",
            Self::Policy => "countersign.policy.v1",
            Self::Branch => "countersign.branch.v1",
            Self::Payload => "countersign.payload.v1",
            Self::Truncated => "countersign.truncated.v1",
            Self::Rationale => "countersign.rationale.v1",
            Self::Arguments => "countersign.arguments.v1",
            Self::Comment => "countersign.comment.v1",
            Self::Patch => "countersign.patch.v1",
            Self::Proposal => "countersign.proposal.v1",
            Self::Submission => "countersign.submission.v1",
            Self::Step => "countersign.step.v1",
            Self::Effect => "countersign.effect.v1",
            Self::Event => "countersign.event.v1",
            Self::Amendment => "countersign.amendment.v1",
            Self::Interrupt => "countersign.interrupt.v1",
            Self::Post => "countersign.post.v1",
            Self::Vote => "countersign.vote.v1",
            Self::PolicyVote => "countersign.policy_vote.v1",
            Self::InterruptVote => "countersign.interrupt_vote.v1",
            Self::Evidence => "countersign.evidence.v1",
            Self::Episode => "countersign.episode.v1",
            Self::EpisodeTerms => "countersign.episode_terms.v1",
            Self::EpisodeEvent => "countersign.episode_event.v1",
            Self::Imported => "countersign.imported.v1",
        }
    }
}

/// SHA-256, written as `sha256:` and 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";
const HEX: &[u8; 16] = b"0123456789abcdef";

impl Digest {
    /// Length of a digest as text.
    pub const TEXT_LEN: usize = PREFIX.len() + 64;

    /// Hashes `tag ‖ 0x00 ‖ parts…`.
    pub fn of(tag: Tag, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(tag.text());
        // The zero byte ends the tag, so no tag is a prefix of another one's input.
        hasher.update([0]);
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Returns HMAC-SHA-256 of `tag ‖ 0x00 ‖ content` under a thread's secret. Without the secret, a reader cannot test
    /// guesses.
    pub fn keyed(secret: &ThreadSecret, tag: Tag, content: &[u8]) -> Self {
        // The content of a leaf's salt begins with `[`, so it never begins like a tag.
        Self(secret.hmac(&[tag.text().as_bytes(), &[0], content].concat()))
    }

    /// Returns the plain SHA-256 of a file or a line, as other programs compute it. No tagged hash equals one.
    pub fn of_file(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the 32 bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the text form without an allocation.
    fn text(&self) -> [u8; Self::TEXT_LEN] {
        let mut text = [0; Self::TEXT_LEN];
        text[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        for (pair, byte) in text[PREFIX.len()..].chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        text
    }

    /// Appends the text form to a buffer.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text());
    }
}

has_form!(
    Digest,
    StringFormat {
        what: "a SHA-256 digest",
        pattern: "^sha256:[0-9a-f]{64}$",
        chars: (Digest::TEXT_LEN, Digest::TEXT_LEN),
        example: "sha256:90a0cfd9a2a9d7e5bb0a7a8e6e3b1c1b2f6b8d2a3c4e5f60718293a4b5c6d7e8",
    }
);

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.text()).expect("letters, digits and a colon"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be `sha256:` and 64 lowercase hex digits")]
pub struct DigestError;

fn nibble(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        // Upper case is refused, so a digest has only one spelling.
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl TryFrom<&str> for Digest {
    type Error = DigestError;

    fn try_from(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix(PREFIX).ok_or(DigestError)?.as_bytes();
        if digits.len() != 64 {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = nibble(pair[0]).zip(nibble(pair[1])).ok_or(DigestError)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        Self::try_from(text.as_str())
    }
}

impl std::str::FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::try_from(text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.text()).expect("letters, digits and a colon"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
