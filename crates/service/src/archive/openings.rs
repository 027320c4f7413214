//! Opens versions for auditors and archives, up to a size limit and without redacted values.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use countersign_domain::chain::commitment::Tree;
use countersign_domain::chain::opening::{Opening, OpeningSelection, open_within};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::ThreadId;
use serde_json::Value;

use crate::archive::VersionArchive;
use crate::error::{Error, Result};
use crate::threads::version::Version;

/// Number of versions that are loaded at once.
const OPENED_AT_ONCE: u64 = 16;

/// Maximum memory for the openings of one response or one file.
pub(crate) const OPENINGS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The opening needs more memory than is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpeningBudgetExceeded;

/// Openings of consecutive versions.
#[derive(Debug)]
pub struct Openings {
    /// Openings by version. Erased versions have none.
    pub of: BTreeMap<u64, Opening>,
    /// First version that exceeded the size limit.
    pub next: Option<u64>,
}

impl VersionArchive {
    /// Opens consecutive versions for auditors, each like [`Self::opening`]. Versions are loaded in groups, so that a
    /// file is not read once for each version. The first version is always opened, whatever its size.
    pub async fn openings(&self, thread: &ThreadId, of: RangeInclusive<u64>) -> Result<Openings> {
        let keys = self.core.keys()?;
        let told_from = self.core.thread(&keys, thread).await?.record.gone.first_explained_version();
        let (mut openings, mut first) = (BTreeMap::new(), told_from.max(*of.start()));
        let mut room = OPENINGS_BYTES_MAX;
        while first <= *of.end() {
            let last = (first + OPENED_AT_ONCE - 1).min(*of.end());
            let versions = match self.threads.versions(&keys, thread, first.saturating_sub(1)..=last).await {
                // The values were erased a moment ago, so their openings are left out. The links are intact without
                // them.
                Err(Error::Erased) => Vec::new(),
                versions => versions?,
            };
            let mut before: Option<&Version> = None;
            for (version, _) in &versions {
                let (policy, at) = (self.policies.policy(&keys, version.entry.policy).await?, version.entry.version);
                if at >= first {
                    let mut any = usize::MAX;
                    // Without an exception for the first version, a large one could never be opened.
                    let room = if openings.is_empty() { &mut any } else { &mut room };
                    match self.opened(&keys, &policy, before, version, room) {
                        Ok(opening) => openings.extend(opening.map(|it| (at, it))),
                        Err(OpeningBudgetExceeded) => return Ok(Openings { of: openings, next: Some(at) }),
                    }
                }
                before = Some(version);
            }
            first = last + 1;
        }
        Ok(Openings { of: openings, next: None })
    }

    /// Opens the trees before and after a version. Returns `None` if the state before is erased.
    pub(crate) fn opened(
        &self,
        keys: &Keys,
        policy: &Policy,
        before: Option<&Version>,
        after: &Version,
        room: &mut usize,
    ) -> std::result::Result<Option<Opening>, OpeningBudgetExceeded> {
        let wanted = |at: &Pointer| policy.writers().any(|(_, rules)| rules.reads().touches(at));
        let view = OpeningSelection { hidden: &|_| false, wanted: &wanted };
        let to = (&after.state, &after.tree);
        let opening = match before {
            Some(before) => open_within((&before.state, &before.tree), to, &view, room),
            None if after.entry.version == 0 => {
                let (secret, nothing) =
                    (self.threads.secret(keys, &after.entry.thread), Value::Object(Default::default()));
                let tree = Tree::new(&secret, &nothing, &after.statement.proposal);
                open_within((&nothing, &tree), to, &view, room)
            }
            None => return Ok(None),
        };
        opening.map(Some).ok_or(OpeningBudgetExceeded)
    }
}
