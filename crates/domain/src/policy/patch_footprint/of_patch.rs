//! Taking a patch apart.

use super::PatchFootprint;
use crate::json::patch::{Patch, PatchFormat, PathEffect};
use crate::json::pointer::Pointer;

impl PatchFootprint {
    /// Reads the patch's claims off its text.
    pub(in crate::policy) fn of(patch: &Patch) -> Self {
        let mut claims = Self { probes: patch.probes().into_iter().collect(), ..Self::default() };
        for place in patch.places() {
            // Only a JSON Patch can remove a single item of an array.
            if let (PathEffect::Taken, PatchFormat::JsonPatch) = (place.reach, patch.format()) {
                claims.probes.extend(moves_others(&place.pointer));
            }
            // A removal changes the commitment roots only if a value existed. The roots would reveal that.
            if matches!(place.reach, PathEffect::Taken | PathEffect::Emptied) {
                claims.probes.insert(place.pointer.clone());
            }
            match place.reach {
                PathEffect::Put | PathEffect::Taken => claims.set.insert(place.pointer),
                PathEffect::Emptied => claims.emptied.insert(place.pointer),
                PathEffect::Passed => claims.passed.insert(place.pointer),
            };
        }
        claims.leaves.extend(patch.names().into_iter().map(|it| it.pointer));
        let top_key = |leaf: &Pointer| leaf.tokens().next().map(|it| it.into_owned());
        claims.top_keys = claims.leaves.iter().filter_map(top_key).collect();
        claims
    }
}

/// Taking an item out of an array moves the later ones up, perhaps to where the node may read: it must be able to
/// read them all. Whether it is an array may not be asked, so whatever looks like an index counts as one.
fn moves_others(pointer: &Pointer) -> Option<Pointer> {
    let last = pointer.tokens().last()?;
    let like_an_index = last == "-" || last.bytes().all(|it| it.is_ascii_digit());
    // The root of every state is an object, so its members never move.
    if like_an_index { pointer.parent().filter(|parent| !parent.is_root()) } else { None }
}
