//! Tests exported files of branches and joins. Each is verified alone and against its parent thread.

use super::*;
use crate::exported::{audited, save_chain, save_keys};

on_both_in_full! {
    exported_branches_and_joins_are_compared(super::research("write")),
}

async fn exported_branches_and_joins_are_compared(scene: ApiScenario) {
    let g = &scene.gateway;
    let (it, other) = (ForkedThread::new(g, &["a", "b"]).await, ForkedThread::new(g, &["a"]).await);
    it.change(g, 0, json!({"question": "what"})).await;
    let joined = it.join(g, &["a", "b"], "union").await.expect(201);
    assert_eq!(joined["outcome"], "committed", "{joined}");
    let folder = tempfile::tempdir().unwrap();
    let save = async |thread: &Value| save_chain(g, folder.path(), thread, 0, 1).await;
    save_keys(g, folder.path()).await;
    save(&it.id).await;
    let (exit, told) = audited(folder.path()).await;
    assert_eq!((exit, told["not_seen"].as_array().unwrap().len()), (0, 2), "what was joined is not here: {told}");
    for branch in &it.branches {
        save(&branch["thread"]).await;
    }
    let (exit, told) = audited(folder.path()).await;
    assert_eq!((exit, &told["not_seen"], told["threads"].as_array().unwrap().len()), (0, &json!([]), 3), "{told}");

    // A branch belongs to the head that it names. The audit finds a thread that has another head there.
    let first = folder.path().join(format!("{}-0.json", it.id.as_str().unwrap()));
    let kept = std::fs::read(&first).unwrap();
    for name in std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()) {
        if name.file_name().unwrap().to_str().unwrap().starts_with(it.id.as_str().unwrap()) {
            std::fs::remove_file(name).unwrap();
        }
    }
    assert!(!first.exists() && !kept.is_empty());
    let (exit, told) = audited(folder.path()).await;
    assert_eq!((exit, told["not_seen"].as_array().unwrap().len()), (0, 2), "what was forked is not here: {told}");
    save(&other.id).await;
    assert_eq!(audited(folder.path()).await.0, 0, "another thread says nothing of them");
}
