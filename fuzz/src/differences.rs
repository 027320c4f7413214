//! Differences and deltas between two values.

use std::collections::BTreeMap;

use countersign_domain::json::diff::{LeafChange, diff, leaves};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::json::state_delta::Delta;
use serde_json::Value;

/// Applied to the value before, a difference gives the value after, and so does a delta.
pub fn check(text: &[u8]) {
    let parts = super::parts(text);
    let (Some(before), Some(after)) = (super::value(parts.first()), super::value(parts.get(1))) else { return };
    assert_eq!(diff(&before, &before), []);
    let changes = diff(&before, &after);
    assert_eq!(changes.is_empty(), before == after);
    applied(&before, &after, &changes);
    let turned = |it: LeafChange| LeafChange { pointer: it.pointer, before: it.after, after: it.before };
    assert_eq!(diff(&after, &before).into_iter().map(turned).collect::<Vec<_>>(), changes);
    let delta = Delta::between(&before, &after);
    assert_eq!(delta.is_empty(), before == after);
    assert_eq!(delta.apply(&before).as_ref(), Ok(&after));
    let stored = delta.encode();
    let read = Delta::decode(stored.as_bytes()).expect("what was encoded is decoded");
    assert_eq!(read, delta);
    assert_eq!(read.encode(), stored);
}

fn applied(before: &Value, after: &Value, changes: &[LeafChange]) {
    let mut standing: BTreeMap<Pointer, &Value> = leaves(before).into_iter().collect();
    for change in changes {
        assert!(change.before.is_some() || change.after.is_some(), "{change:?}");
        assert_eq!(standing.remove(&change.pointer), change.before.as_ref(), "{change:?}");
        if let Some(leaf) = &change.after {
            assert_eq!(standing.insert(change.pointer.clone(), leaf), None, "named twice: {change:?}");
        }
    }
    assert_eq!(standing, leaves(after).into_iter().collect());
}
