//! Tests the inbox: its lists, their order, and that the pages in both directions cover every review.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::Account;
use countersign_domain::primitives::id::FlowId;
use countersign_domain::reviews::{HoldOutcome, SearchKey, VoteVerdict};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::audit::audit;
use countersign_service::inbox::list::InboxCursor;
use countersign_service::inbox::list::InboxPageSelection;
use countersign_service::inbox::list::WaitingCount;
use countersign_service::inbox::{InboxFilter, InboxOwnerFilter, InboxSearch, InboxStateFilter};
use countersign_store::sqlite::SqliteStore;
use serde_json::Value;

use crate::gateway::{MovedClock, POLICY, TestGateway, person, settings, source, spawn_gateway};
use crate::sqlite::unsynced;

fn id(held: &Value) -> String {
    held["review"]["id"].as_str().unwrap().to_owned()
}

/// Returns the page's reviews, and whether there are pages before and after it.
async fn page(
    g: &TestGateway,
    who: &Account,
    wanted: &InboxFilter,
    part: &InboxPageSelection,
    limit: usize,
) -> (Vec<String>, [Option<InboxCursor>; 2]) {
    let found = g.service.inbox.find(who, wanted, part, limit).await.unwrap();
    (found.items.iter().map(|it| it.hold.id.to_string()).collect(), [found.previous, found.next])
}

async fn all(g: &TestGateway, who: &Account, wanted: &InboxFilter) -> Vec<String> {
    page(g, who, wanted, &InboxPageSelection::First, 100).await.0
}

/// One held change that waits, a minute after the one before.
async fn waiting(g: &TestGateway) -> String {
    g.pass(Duration::from_secs(60));
    id(&g.held(&g.thread().await).await)
}

fn words(text: &str) -> InboxFilter {
    let search = InboxSearch::Words { thread: text.try_into().ok(), key: SearchKey::read(text) };
    InboxFilter { which: InboxStateFilter::Any, search: Some(search), ..InboxFilter::open() }
}

#[tokio::test]
async fn pages_in_both_directions_cover_the_list() {
    let g = spawn_gateway().await;
    let mut whole = Vec::new();
    for _ in 0..7 {
        whole.push(waiting(&g).await);
    }
    for wanted in [InboxFilter::open(), InboxFilter::mine()] {
        assert_eq!(all(&g, &g.alice, &wanted).await, whole);
        for size in [1, 2, 3, 7] {
            let (mut forth, mut part) = (Vec::new(), InboxPageSelection::First);
            let mut pages: Vec<Vec<String>> = Vec::new();
            loop {
                let (ids, [previous, next]) = page(&g, &g.alice, &wanted, &part, size).await;
                assert_eq!(previous.is_none(), part == InboxPageSelection::First);
                forth.extend(ids.clone());
                pages.push(ids);
                match next {
                    Some(place) => part = InboxPageSelection::After(place),
                    None => break,
                }
            }
            assert_eq!(forth, whole, "by {size}");
            let mut back = pages.pop().unwrap();
            let mut place = page(&g, &g.alice, &wanted, &part, size).await.1[0].clone();
            while let Some(before) = place {
                let (ids, [previous, next]) =
                    page(&g, &g.alice, &wanted, &InboxPageSelection::Before(before), size).await;
                assert!(next.is_some());
                assert_eq!(Some(&ids), pages.pop().as_ref(), "by {size}");
                back.splice(0..0, ids);
                place = previous;
            }
            assert_eq!(back, whole, "back by {size}");
        }
    }
}

#[tokio::test]
async fn each_filter_lists_only_its_reviews() {
    let g = spawn_gateway().await;
    let carol = person(&g.service, "carol", &["auditors"]).await;
    let thread = g.thread().await;
    let (held, open) = (g.held(&thread).await, waiting(&g).await);
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let denied = id(&held);
    let held = g.held(&g.thread().await).await;
    let approved = id(&held);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    let flow = |name: &str| Some(FlowId::try_from(name).unwrap());
    assert_eq!(all(&g, &g.alice, &InboxFilter::open()).await, from_ref(&open));
    assert_eq!(all(&g, &g.alice, &InboxFilter::mine()).await, from_ref(&open));
    assert_eq!(all(&g, &carol, &InboxFilter::mine()).await, [""; 0]);
    let everything = [open.clone(), approved.clone(), denied.clone()];
    let of = |which| InboxFilter { which, ..InboxFilter::open() };
    assert_eq!(all(&g, &g.alice, &of(InboxStateFilter::Any)).await, everything);
    assert_eq!(all(&g, &g.alice, &of(InboxStateFilter::Past)).await, everything[1..]);
    assert_eq!(all(&g, &g.alice, &of(InboxStateFilter::Ended(HoldOutcome::Denied))).await, from_ref(&denied));
    assert_eq!(all(&g, &g.alice, &of(InboxStateFilter::Ended(HoldOutcome::Expired))).await, [""; 0]);
    for (name, count) in [("payments", 3), ("others", 0)] {
        let any = InboxFilter { flow: flow(name), ..of(InboxStateFilter::Any) };
        assert_eq!(all(&g, &g.alice, &any).await.len(), count);
        let mine = InboxFilter { flow: flow(name), whose: InboxOwnerFilter::Mine, ..of(InboxStateFilter::Open) };
        assert_eq!(all(&g, &g.alice, &mine).await.len(), usize::from(count > 0));
        let ended = InboxFilter { flow: flow(name), ..of(InboxStateFilter::Ended(HoldOutcome::Approved)) };
        assert_eq!(all(&g, &g.alice, &ended).await.len(), usize::from(count > 0));
    }
    let deadline =
        g.service.inbox.find(&g.alice, &InboxFilter::open(), &InboxPageSelection::First, 1).await.unwrap().items[0]
            .hold
            .expires_at;
    assert_eq!(all(&g, &g.alice, &of(InboxStateFilter::EndingBy(deadline))).await, [open]);
    let sooner = countersign_domain::primitives::time::Timestamp::from_millis(deadline.millis() - 1);
    assert_eq!(all(&g, &g.alice, &of(InboxStateFilter::EndingBy(sooner))).await, [""; 0]);
}

#[tokio::test]
async fn a_review_is_found_by_digest_thread_and_protected_key() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let (review, digest) = (id(&held), held["transition"].as_str().unwrap().to_owned());
    let other = waiting(&g).await;
    for prefix in [digest.as_str(), &digest[..20], "sha256:"] {
        let wanted = InboxFilter {
            which: InboxStateFilter::Any,
            search: Some(InboxSearch::Digest(prefix.to_owned())),
            ..InboxFilter::open()
        };
        let found = all(&g, &g.alice, &wanted).await;
        assert!(found.contains(&review), "{prefix}");
        assert_eq!(found.contains(&other), prefix == "sha256:");
    }
    assert_eq!(all(&g, &g.alice, &words(thread["thread"].as_str().unwrap())).await, from_ref(&review));
    for key in ["target_user_id", "$.target_user_id", "/target_user_id"] {
        assert_eq!(all(&g, &g.alice, &words(key)).await, [other.clone(), review.clone()], "{key}");
    }
    for key in ["payment", "target_user", "target_user_id.x"] {
        assert_eq!(all(&g, &g.alice, &words(key)).await, [""; 0], "{key}");
    }
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    assert_eq!(all(&g, &g.alice, &words("target_user_id")).await, [other, review]);
}

#[tokio::test]
async fn review_past_its_deadline_is_not_listed_as_open() {
    let g = spawn_gateway().await;
    waiting(&g).await;
    assert_eq!(g.service.inbox.count_waiting(&g.alice, 100).await.unwrap(), WaitingCount::Exactly(1));
    g.pass(Duration::from_secs(24 * 3600));
    assert_eq!(all(&g, &g.alice, &InboxFilter::open()).await, [""; 0]);
    assert_eq!(g.service.inbox.count_waiting(&g.alice, 100).await.unwrap(), WaitingCount::Exactly(0));
}

#[tokio::test]
async fn open_reviews_are_counted_up_to_a_limit() {
    let g = spawn_gateway().await;
    for _ in 0..3 {
        waiting(&g).await;
    }
    let count = async |who, limit| g.service.inbox.count_waiting(who, limit).await.unwrap();
    assert_eq!(count(&g.alice, 3).await, WaitingCount::Exactly(3));
    assert_eq!(count(&g.alice, 2).await, WaitingCount::AtLeast(2));
    assert_eq!([WaitingCount::AtLeast(100).to_string(), WaitingCount::Exactly(3).to_string()], ["100+", "3"]);
    let nobody = person(&g.service, "nobody", &[]).await;
    assert_eq!(count(&nobody, 2).await, WaitingCount::Exactly(0));
}

#[tokio::test]
async fn reviewer_in_several_groups_finds_each_review_once() {
    let g = spawn_gateway().await;
    let review = waiting(&g).await;
    for groups in [&["reviewers", "a", "b"][..], &["reviewers", "a", "b", "c", "d"]] {
        let name = format!("of{}", groups.len());
        let many = person(&g.service, &name, groups).await;
        assert_eq!(all(&g, &many, &InboxFilter::mine()).await, from_ref(&review));
    }
}

#[tokio::test]
async fn foreign_label_is_ignored() {
    let g = spawn_gateway().await;
    let (held, open) = (g.held(&g.thread().await).await, waiting(&g).await);
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let database = rusqlite::Connection::open(g.folder.path().join("countersign.db")).unwrap();
    for word in ["open", "open group reviewers"] {
        let sql = "INSERT INTO labels VALUES ('holds', ?1, (SELECT max(due) FROM labels), ?2)";
        assert_eq!(database.execute(sql, (word, id(&held))).unwrap(), 1);
    }
    for wanted in [InboxFilter::open(), InboxFilter::mine()] {
        assert_eq!(all(&g, &g.alice, &wanted).await, from_ref(&open));
    }
}

#[tokio::test]
async fn database_without_labels_gets_them_at_the_start() {
    let g = spawn_gateway().await;
    let held = g.held(&g.thread().await).await;
    let open = waiting(&g).await;
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let path = g.folder.path().join("countersign.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    assert!(database.execute("DELETE FROM labels", []).unwrap() > 10);
    // The rows as in a release that did not list branches. The edition records that and nothing else.
    assert_eq!(database.execute("INSERT INTO labels VALUES ('labels', 'edition', 1, 'holds')", []).unwrap(), 1);
    assert_eq!(all(&g, &g.alice, &InboxFilter::open()).await, [""; 0]);
    let options = unsynced(&g.clock);
    let store = Arc::new(SqliteStore::open(&path, options).unwrap());
    let keyring = Keyring::open_or_create(&g.folder.path().join("keyring.json"), None, &SystemClock).unwrap();
    let clock = Arc::new(MovedClock(g.clock.clone()));
    let (keys, now) = (keyring.current().unwrap(), clock.now());
    let before = audit(&*store, &keys, now).await.unwrap();
    assert_eq!(before.findings.iter().map(|it| it.table).collect::<BTreeSet<_>>(), BTreeSet::from(["labels"]));
    drop(Service::open(store.clone(), keyring, clock, settings(&g.url)).await.unwrap());
    assert_eq!(audit(&*store, &keys, now).await.unwrap().findings, []);
    assert_eq!(all(&g, &g.alice, &InboxFilter::open()).await, [open]);
    assert_eq!(all(&g, &g.alice, &InboxFilter::past()).await, [id(&held)]);
}

/// Returns a page of the inbox as a signed-in person sees it.
async fn told(g: &TestGateway, secret: &str, path: &str) -> (u16, String) {
    let page = g.http.get(format!("{}{path}", g.url)).header("cookie", format!("countersign={secret}")).send();
    let page = page.await.unwrap();
    (page.status().as_u16(), page.text().await.unwrap())
}

#[tokio::test]
async fn page_searches_and_links_pages_in_both_directions() {
    let g = spawn_gateway().await;
    let other = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    let by = countersign_domain::primitives::id::PrincipalId::try_from("tests").unwrap();
    g.service.policy_changes.activate_policy(&by, None, source(&other), BTreeSet::new()).await.unwrap();
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    for _ in 0..51 {
        waiting(&g).await;
    }
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let url = format!("/reviews/{}", id(&held));
    let digest = held["transition"].as_str().unwrap();
    let queries = [
        format!("q={}", &digest[7..14]),
        format!("q={}", digest.replace(':', "%3A")),
        format!("q={}&flow=payments", thread["thread"].as_str().unwrap()),
        format!("q=/target_user_id&show=waiting&before={}.z", i64::MAX),
    ];
    for query in queries {
        let (status, page) = told(&g, &secret, &format!("/?{query}")).await;
        assert_eq!((status, page.contains(&url)), (200, !query.contains("before")), "{query}");
    }
    let (_, page) = told(&g, &secret, "/?flow=refunds&show=mine").await;
    assert!(page.contains("No matches.") && page.contains("value=\"refunds\" selected"), "{page}");
    let (_, first) = told(&g, &secret, "/").await;
    assert!(first.contains(&url) && !first.contains("Previous page") && first.contains("<title>(52) Inbox"), "{first}");
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    let (_, second) = told(&g, &secret, &next).await;
    assert!(!second.contains(&url) && second.matches("data-review=").count() == 2, "{second}");
    let back = second.split("rel=\"prev\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    let (_, again) = told(&g, &secret, &back).await;
    assert!(again.contains(&url) && again.contains("rel=\"next\"") && !again.contains("rel=\"prev\""), "{again}");
    for nonsense in ["show=none", "flow=%00", "after=x", "before=1.a&after=1.a"] {
        assert_eq!(told(&g, &secret, &format!("/?{nonsense}")).await.0, 404, "{nonsense}");
    }
    assert_eq!(told(&g, &secret, &format!("/?q={}", "x".repeat(301))).await.0, 400);
    assert_eq!(told(&g, &secret, "/?q=%22%3E%3Cscript%3E%00&show=&flow=").await.0, 200);
}
