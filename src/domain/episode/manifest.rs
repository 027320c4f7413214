//! `manifest.json`: which files a finished run consists of, to the byte.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Artefact;
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::chain::jws::{self, Typ};
use crate::domain::json::canonical::canonical;
use crate::domain::json::parse::{Limits, parse};
use crate::domain::keys::{KeyState, KeyUse, PublicKeys, SigningKey};
use crate::domain::primitives::id::ThreadId;

/// What a manifest says of itself.
const SCHEMA: &str = "manifest/1.0";
/// Files of one run. Ours has five, others' some dozens.
pub const FILES_MAX: usize = 256;

/// One file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileEntry {
    /// What it holds.
    pub kind: String,
    /// Its name in the folder.
    pub name: String,
    /// The plain SHA-256 of its bytes.
    pub sha256: Digest,
    /// How many they are.
    pub size_bytes: u64,
}

/// What a manifest says.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// Of which run.
    pub episode_id: String,
    /// Its files.
    pub files: Vec<FileEntry>,
    /// Who signed it, if anybody did.
    pub signer: Option<Signer>,
    /// What the signature is over.
    pub digest: Digest,
}

/// A signature over the rest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signer {
    /// The token: `countersign-episode+jwt`.
    pub jws: String,
    /// The key that it names.
    pub kid: String,
}

/// What a gateway signs of a manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The run: the thread that it is.
    pub episode: ThreadId,
    /// The second of its last event.
    pub iat: u64,
    /// The gateway.
    pub iss: String,
    /// `H("countersign.episode.v1", JCS(the manifest with signer null))`.
    pub manifest: Digest,
}

/// Makes the manifest of these files, unsigned. Its moment is that of the run's last event, so that the same run has the
/// same manifest whenever it is asked for.
pub fn make(episode_id: &str, created_at: &str, files: &[(Artefact, &[u8])]) -> Value {
    let entry = |(artefact, bytes): &(Artefact, &[u8])| FileEntry {
        kind: artefact.kind().to_owned(),
        name: artefact.file().to_owned(),
        sha256: Digest::of_file(bytes),
        size_bytes: bytes.len() as u64,
    };
    let mut files: Vec<FileEntry> = files.iter().map(entry).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    json!({
        "schema_version": SCHEMA, "episode_id": episode_id, "created_at": created_at, "files": files, "signer": null,
    })
}

impl Claims {
    /// Whether they say something: who signed.
    pub fn is_whole(&self) -> bool {
        !self.iss.is_empty()
    }
}

/// Signs a manifest that [`make`] made of a thread's run.
pub fn signed(mut manifest: Value, episode: &ThreadId, key: &SigningKey, (issuer, iat): (&str, u64)) -> Value {
    let claims = Claims { episode: episode.clone(), iat, iss: issuer.to_owned(), manifest: digest(&manifest) };
    let jws = jws::sign(key, Typ::Episode, &claims);
    manifest["signer"] = json!(Signer { jws, kid: key.kid().to_owned() });
    manifest
}

/// Over a manifest without its signer.
fn digest(manifest: &Value) -> Digest {
    let mut bare = manifest.clone();
    bare["signer"] = Value::Null;
    Digest::of(Tag::Episode, &[canonical(&bare).as_bytes()])
}

#[derive(Deserialize)]
struct Written {
    schema_version: String,
    episode_id: String,
    files: Vec<FileEntry>,
    #[serde(default)]
    signer: Option<Signer>,
}

/// Reads a manifest; nothing if it is none.
pub fn read(bytes: &[u8]) -> Option<Manifest> {
    let value = parse(bytes, &Limits::default()).ok()?;
    let digest = digest(value.as_object().map(|_| &value)?);
    let Written { schema_version, episode_id, files, signer } = serde_json::from_value(value).ok()?;
    let sound = schema_version == SCHEMA && files.len() <= FILES_MAX;
    sound.then_some(Manifest { episode_id, files, signer, digest })
}

impl Manifest {
    /// Whether its signature is one by a key that signs chains, or once did, over exactly this manifest.
    pub fn is_signed_by(&self, keys: &PublicKeys) -> bool {
        self.signed_by(keys).is_some()
    }

    /// The issuer whose signature it is, by such a key.
    pub fn signed_by(&self, keys: &PublicKeys) -> Option<String> {
        let signer = self.signer.as_ref()?;
        let token = jws::read::<Claims>(&signer.jws, Typ::Episode).ok()?;
        let trusted = |state| matches!(state, KeyState::Signing | KeyState::Retired);
        let key = keys.public(KeyUse::Chain, token.kid()).filter(|it| trusted(it.state()) && it.kid() == signer.kid);
        let claims = token.verify(key?)?;
        let ours = claims.is_whole()
            && claims.episode.as_str() == self.episode_id
            && claims.manifest == self.digest
            && keys.issuer().is_none_or(|issuer| issuer == claims.iss);
        ours.then(|| claims.iss.clone())
    }
}
