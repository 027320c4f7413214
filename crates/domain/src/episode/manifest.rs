//! `manifest.json`: the files of a finished episode, to the byte.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Artefact;
use crate::chain::hash::{Digest, Tag};
use crate::chain::jws::{self, TokenClaims, TokenType};
use crate::json::canonical::canonical;
use crate::json::parse::{ParseLimits, parse};
use crate::keys::{KeyState, KeyUse, PublicKeys, SigningKey};
use crate::primitives::id::ThreadId;

/// Schema name in a manifest.
const SCHEMA: &str = "manifest/1.0";
/// Maximum number of files of one episode. Ours has five, those of other systems some dozens.
pub const FILES_MAX: usize = 256;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileEntry {
    pub kind: String,
    pub name: String,
    /// Plain SHA-256 of its bytes.
    pub sha256: Digest,
    /// Size in bytes.
    pub size_bytes: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    pub episode_id: String,
    pub files: Vec<FileEntry>,
    pub signer: Option<ManifestSigner>,
    /// Digest that the signature covers.
    pub digest: Digest,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestSigner {
    /// Token of type `countersign-episode+jwt`.
    pub jws: String,
    pub kid: String,
}

/// Claims of a gateway's signature over a manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestClaims {
    pub episode: ThreadId,
    /// Second of the last event.
    pub iat: u64,
    pub iss: String,
    /// `H("countersign.episode.v1", JCS(the manifest with signer null))`.
    pub manifest: Digest,
}

/// Builds the unsigned manifest of these files. Its moment is that of the last event, so the same episode always has
/// the same manifest.
pub fn make(episode_id: &str, created_at: &str, files: &[(Artefact, &[u8])]) -> Value {
    let entry = |(artefact, bytes): &(Artefact, &[u8])| FileEntry {
        kind: artefact.kind().to_owned(),
        name: artefact.file().to_owned(),
        sha256: Digest::of_file(bytes),
        size_bytes: bytes.len() as u64,
    };
    let mut files: Vec<FileEntry> = files.iter().map(entry).collect();
    // Equal runs get equal manifests.
    files.sort_by(|one, other| one.name.cmp(&other.name));
    json!({
        "schema_version": SCHEMA, "episode_id": episode_id, "created_at": created_at, "files": files, "signer": null,
    })
}

impl TokenClaims for ManifestClaims {
    fn is_whole(&self) -> bool {
        !self.iss.is_empty()
    }
}

/// Signs a manifest that [`make`] built of a thread's episode.
pub fn signed(mut manifest: Value, episode: &ThreadId, key: &SigningKey, issuer: &str, iat: u64) -> Value {
    let claims = ManifestClaims { episode: episode.clone(), iat, iss: issuer.to_owned(), manifest: digest(&manifest) };
    let jws = jws::sign(key, TokenType::Episode, &claims);
    manifest["signer"] = json!(ManifestSigner { jws, kid: key.kid().to_owned() });
    manifest
}

/// Returns the digest of a manifest without its signer.
fn digest(manifest: &Value) -> Digest {
    let mut bare = manifest.clone();
    // The signature cannot cover itself.
    bare["signer"] = Value::Null;
    Digest::of(Tag::Episode, &[canonical(&bare).as_bytes()])
}

#[derive(Deserialize)]
struct ManifestDocument {
    schema_version: String,
    episode_id: String,
    files: Vec<FileEntry>,
    #[serde(default)]
    signer: Option<ManifestSigner>,
}

/// Reads a manifest. Returns `None` if it is malformed.
pub fn read(bytes: &[u8]) -> Option<Manifest> {
    let value = parse(bytes, &ParseLimits::default()).ok()?;
    let digest = digest(value.as_object().map(|_| &value)?);
    let ManifestDocument { schema_version, episode_id, files, signer } = serde_json::from_value(value).ok()?;
    let sound = schema_version == SCHEMA && files.len() <= FILES_MAX;
    sound.then_some(Manifest { episode_id, files, signer, digest })
}

impl Manifest {
    /// Returns whether a key that signs chains, now or formerly, signed exactly this manifest.
    pub fn is_signed_by(&self, keys: &PublicKeys) -> bool {
        self.signed_by(keys).is_some()
    }

    /// Returns the issuer whose key signed it, if it is such a key.
    pub fn signed_by(&self, keys: &PublicKeys) -> Option<String> {
        let signer = self.signer.as_ref()?;
        let token = jws::read::<ManifestClaims>(&signer.jws, TokenType::Episode).ok()?;
        // A retired key signs nothing new, but its signatures stay valid.
        let trusted = |state| matches!(state, KeyState::Signing | KeyState::Retired);
        let key = keys.public(KeyUse::Chain, token.kid()).filter(|it| trusted(it.state()) && it.kid() == signer.kid);
        let claims = token.verify(key?)?;
        let ours = claims.episode.as_str() == self.episode_id
            && claims.manifest == self.digest
            // A key alone does not identify the issuer if the key set names one.
            && keys.issuer().is_none_or(|issuer| issuer == claims.iss);
        ours.then(|| claims.iss.clone())
    }
}
