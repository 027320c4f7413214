//! Manages the keyring file. It is outside the database, so that an attacker who edits the database cannot sign.
//!
//! The file is created once with mode 0600. Each change replaces it as a whole: a new file is written, synced and
//! renamed. A gateway checks the file's metadata before each use of the keys, so that `keys rotate` and `keys revoke`
//! take effect at once. If the file cannot be read, the gateway does not use the keys that it read before.

mod file;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use countersign_domain::keys::{Keys, KeysError, KeysIdentity};
use countersign_domain::primitives::secret::Secret;

use crate::clock::Clock;
use crate::random;
use file::FileFingerprint;

/// The reason that no keys are available.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("there is no keyring at {}: `countersign serve` creates one at its first start", path.display())]
    Missing { path: PathBuf },
    /// Other users can read or write the file.
    #[error("other users can access {} (mode {mode:03o}): run `chmod 600 {}`, and rotate the keys if others have read it",
        path.display(), path.display())]
    Exposed { path: PathBuf, mode: u32 },
    /// The operating system returned an error.
    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// The content is not a valid keyring.
    #[error("{origin} is not a valid keyring")]
    Invalid {
        /// The path of the file, or the variable.
        origin: String,
        source: KeysError,
    },
    /// The configuration has another issuer.
    #[error(
        "the keyring's issuer is {keyring}, but the configuration says {configured}: an issuer is permanent, \
         so remove `issuer` from the configuration or set `keyring` to the other keyring"
    )]
    Issuer {
        /// The issuer in the configuration.
        configured: String,
        keyring: String,
    },
    /// A different keyring is at the same path.
    #[error("another keyring is at {}: its issuer, salt or row key differs from the one that this gateway started with", path.display())]
    Replaced { path: PathBuf },
    /// The keyring comes from the environment.
    #[error("the keyring comes from COUNTERSIGN_KEYRING and cannot be changed here: change that variable instead")]
    ReadOnly,
    /// The keyring rejected the change.
    #[error(transparent)]
    Refused(KeysError),
}

#[derive(Clone, Debug)]
pub enum KeyringSource {
    File(PathBuf),
    Given(Secret<String>),
}

/// The keyring of a process.
#[derive(Debug)]
pub struct Keyring {
    origin: KeyringOrigin,
    identity: KeysIdentity,
    cache: RwLock<Option<CachedKeyring>>,
}

#[derive(Debug)]
enum KeyringOrigin {
    File(PathBuf),
    /// From the environment. It never changes while the process runs.
    Given(Arc<Keys>),
}

#[derive(Debug)]
struct CachedKeyring {
    stamp: FileFingerprint,
    keys: Arc<Keys>,
}

impl Keyring {
    /// Opens the keyring of a gateway. The first start creates the file.
    pub fn start(source: &KeyringSource, issuer: Option<&str>, clock: &impl Clock) -> Result<Self, KeyringError> {
        match source {
            KeyringSource::File(path) => Self::open_or_create(path, issuer, clock),
            KeyringSource::Given(text) => Self::given(text, issuer),
        }
    }

    /// Opens the keyring for a command. It must exist.
    pub fn existing(source: &KeyringSource, issuer: Option<&str>) -> Result<Self, KeyringError> {
        match source {
            KeyringSource::File(path) => Self::open(path, issuer),
            KeyringSource::Given(text) => Self::given(text, issuer),
        }
    }

    /// Opens the keyring, and creates it at the first start. If two processes start at once, one creates the file and
    /// both open it. Without a configured issuer a new keyring gets `urn:countersign:<random UUID>`.
    pub fn open_or_create(path: &Path, issuer: Option<&str>, clock: &impl Clock) -> Result<Self, KeyringError> {
        match Self::open(path, issuer) {
            Err(KeyringError::Missing { .. }) => {
                let named = issuer.map_or_else(|| format!("urn:countersign:{}", random::uuid_v4()), str::to_owned);
                let keys = Keys::generate(&named, clock.now(), &mut random::fill).map_err(KeyringError::Refused)?;
                file::create(path, &keys)?;
                // The file is read again: another process may have created it first, with other keys.
                Self::open(path, issuer)
            }
            opened => opened,
        }
    }

    /// Opens a keyring that must exist.
    pub fn open(path: &Path, issuer: Option<&str>) -> Result<Self, KeyringError> {
        let (stamp, keys) = file::load(path)?;
        same_issuer(&keys, issuer)?;
        let identity = keys.identity();
        let cache = RwLock::new(Some(CachedKeyring { stamp, keys: Arc::new(keys) }));
        Ok(Self { origin: KeyringOrigin::File(path.to_owned()), identity, cache })
    }

    /// Reads a keyring from a text. It cannot be changed.
    pub fn given(text: &Secret<String>, issuer: Option<&str>) -> Result<Self, KeyringError> {
        let keys = Keys::read(text.expose())
            .map_err(|source| KeyringError::Invalid { origin: "COUNTERSIGN_KEYRING".to_owned(), source })?;
        same_issuer(&keys, issuer)?;
        let identity = keys.identity();
        Ok(Self { origin: KeyringOrigin::Given(Arc::new(keys)), identity, cache: RwLock::new(None) })
    }

    /// Returns the current keys. Each call checks the file's metadata, which takes a microsecond, and reads the file
    /// again if it changed. If that fails, no keys are available until it succeeds.
    pub fn current(&self) -> Result<Arc<Keys>, KeyringError> {
        let path = match &self.origin {
            KeyringOrigin::Given(keys) => return Ok(Arc::clone(keys)),
            KeyringOrigin::File(path) => path,
        };
        let stamp = file::stamp(path)?;
        // A poisoned lock is safe here: the entry is replaced as a whole.
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        match &*cache {
            Some(cached) if cached.stamp == stamp => return Ok(Arc::clone(&cached.keys)),
            _ => drop(cache),
        }
        self.keep(path, file::load(path))
    }

    /// Changes the keyring: reads it again under the lock, applies `change`, and replaces the file.
    pub fn update(&self, change: impl FnOnce(Keys) -> Result<Keys, KeysError>) -> Result<Arc<Keys>, KeyringError> {
        let KeyringOrigin::File(path) = &self.origin else {
            return Err(KeyringError::ReadOnly);
        };
        // If the path is a symbolic link, its target is locked and replaced, so that the link survives.
        let path = &file::real(path)?;
        let _lock = file::lock(path)?;
        // The cached keys may be older than the file, and a change must not undo another one.
        let (_, keys) = file::load(path)?;
        // A change must never be made to a keyring that replaced this one.
        self.same_keyring(path, &keys)?;
        let changed = change(keys).map_err(KeyringError::Refused)?;
        file::replace(path, &changed)?;
        self.keep(path, file::load(path))
    }

    /// Stores the keys that were read. After an error it drops the previous keys.
    fn keep(
        &self,
        path: &Path,
        loaded: Result<(FileFingerprint, Keys), KeyringError>,
    ) -> Result<Arc<Keys>, KeyringError> {
        let checked = loaded.and_then(|(stamp, keys)| {
            self.same_keyring(path, &keys)?;
            Ok(CachedKeyring { stamp, keys: Arc::new(keys) })
        });
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        match checked {
            Ok(cached) => Ok(Arc::clone(&cache.insert(cached).keys)),
            Err(error) => {
                // Old keys must not stay in use: the file may be unreadable because a key was revoked in it.
                *cache = None;
                Err(error)
            }
        }
    }

    fn same_keyring(&self, path: &Path, keys: &Keys) -> Result<(), KeyringError> {
        match keys.continues(&self.identity) {
            true => Ok(()),
            false => Err(KeyringError::Replaced { path: path.to_owned() }),
        }
    }
}

fn same_issuer(keys: &Keys, configured: Option<&str>) -> Result<(), KeyringError> {
    match configured {
        Some(configured) if configured != keys.issuer() => {
            Err(KeyringError::Issuer { configured: configured.to_owned(), keyring: keys.issuer().to_owned() })
        }
        _ => Ok(()),
    }
}
