//! The keyring file: outside the database, so that whoever edits the database signs nothing.
//!
//! It is made once, with mode 0600, and from then on only replaced whole: written beside itself, synced,
//! renamed. A gateway looks at the file's stamp each time it needs keys, so that what the command line
//! rotates or revokes acts in a running gateway at once. What cannot be read is not trusted: there is no
//! falling back to what was read before.

mod file;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::clock::Clock;
use crate::domain::keys::{Keys, KeysError, KeysIdentity};
use crate::domain::primitives::secret::Secret;
use crate::random;
use file::FileFingerprint;

/// Why there are no keys to be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("there is no keyring at {}: `countersign serve` makes one at its first start", path.display())]
    Missing { path: PathBuf },
    /// Others than its owner may read or write it.
    #[error("{} is open to others (mode {mode:03o}): say `chmod 600 {}`, and rotate its keys if others have read it",
        path.display(), path.display())]
    Exposed { path: PathBuf, mode: u32 },
    /// The operating system refuses.
    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// Its content is not a keyring.
    #[error("{origin} is not a keyring that can be used")]
    Invalid {
        /// The file or the variable.
        origin: String,
        source: KeysError,
    },
    /// The configuration says another issuer.
    #[error(
        "the keyring's issuer is {keyring}, but the configuration says {configured}: an issuer is fixed for ever, \
         so take `issuer` out of the configuration or point `keyring` to the other keyring"
    )]
    Issuer {
        /// What the configuration says.
        configured: String,
        keyring: String,
    },
    /// A different keyring lies where this one was.
    #[error("another keyring lies at {}: its issuer, salt or row key is not the one this gateway started with", path.display())]
    Replaced { path: PathBuf },
    /// It came from the environment.
    #[error("the keyring comes from COUNTERSIGN_KEYRING and cannot be changed here: change it where that is set")]
    ReadOnly,
    /// The change itself is refused.
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
    /// Given whole; never changes while the process runs.
    Given(Arc<Keys>),
}

#[derive(Debug)]
struct CachedKeyring {
    stamp: FileFingerprint,
    keys: Arc<Keys>,
}

impl Keyring {
    /// The keyring of a gateway: made at the very first start if it is a file.
    pub fn start(source: &KeyringSource, issuer: Option<&str>, clock: &impl Clock) -> Result<Self, KeyringError> {
        match source {
            KeyringSource::File(path) => Self::open_or_create(path, issuer, clock),
            KeyringSource::Given(text) => Self::given(text, issuer),
        }
    }

    /// The keyring of a command beside the gateway: it must be there already.
    pub fn existing(source: &KeyringSource, issuer: Option<&str>) -> Result<Self, KeyringError> {
        match source {
            KeyringSource::File(path) => Self::open(path, issuer),
            KeyringSource::Given(text) => Self::given(text, issuer),
        }
    }

    /// Opens the keyring, or makes it at the very first start. Of two that start at once, one makes it
    /// and both open it. Without a configured issuer a new keyring gets `urn:countersign:<random UUID>`.
    pub fn open_or_create(path: &Path, issuer: Option<&str>, clock: &impl Clock) -> Result<Self, KeyringError> {
        match Self::open(path, issuer) {
            Err(KeyringError::Missing { .. }) => {
                let named = issuer.map_or_else(|| format!("urn:countersign:{}", random::uuid_v4()), str::to_owned);
                let keys = Keys::generate(&named, clock.now(), &mut random::fill).map_err(KeyringError::Refused)?;
                file::create(path, &keys)?;
                Self::open(path, issuer)
            }
            opened => opened,
        }
    }

    /// Opens a keyring that must be there already.
    pub fn open(path: &Path, issuer: Option<&str>) -> Result<Self, KeyringError> {
        let (stamp, keys) = file::load(path)?;
        same_issuer(&keys, issuer)?;
        let identity = keys.identity();
        let cache = RwLock::new(Some(CachedKeyring { stamp, keys: Arc::new(keys) }));
        Ok(Self { origin: KeyringOrigin::File(path.to_owned()), identity, cache })
    }

    /// Takes a keyring given as text. It can be used but not changed.
    pub fn given(text: &Secret<String>, issuer: Option<&str>) -> Result<Self, KeyringError> {
        let keys = Keys::read(text.expose())
            .map_err(|source| KeyringError::Invalid { origin: "COUNTERSIGN_KEYRING".to_owned(), source })?;
        same_issuer(&keys, issuer)?;
        let identity = keys.identity();
        Ok(Self { origin: KeyringOrigin::Given(Arc::new(keys)), identity, cache: RwLock::new(None) })
    }

    /// The keys as they stand now. Looks at the file each time (a microsecond) and reads it again if it
    /// changed. If that fails, nothing is trusted until it succeeds.
    pub fn current(&self) -> Result<Arc<Keys>, KeyringError> {
        let path = match &self.origin {
            KeyringOrigin::Given(keys) => return Ok(Arc::clone(keys)),
            KeyringOrigin::File(path) => path,
        };
        let stamp = file::stamp(path)?;
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        match &*cache {
            Some(cached) if cached.stamp == stamp => return Ok(Arc::clone(&cached.keys)),
            _ => drop(cache),
        }
        self.keep(path, file::load(path))
    }

    /// Changes the keyring: reads it afresh under its lock, and replaces it whole with what `change` makes.
    pub fn update(&self, change: impl FnOnce(Keys) -> Result<Keys, KeysError>) -> Result<Arc<Keys>, KeyringError> {
        let KeyringOrigin::File(path) = &self.origin else {
            return Err(KeyringError::ReadOnly);
        };
        // Where the name is a link, what it leads to is locked and replaced.
        let path = &file::real(path)?;
        let _lock = file::lock(path)?;
        let (_, keys) = file::load(path)?;
        self.same_keyring(path, &keys)?;
        let changed = change(keys).map_err(KeyringError::Refused)?;
        file::replace(path, &changed)?;
        self.keep(path, file::load(path))
    }

    /// Remembers what was read, or forgets what was read before.
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
