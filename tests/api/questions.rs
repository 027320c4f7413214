//! Tests the number of queries that a page sends to the store. It is small, however many rows there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_domain::reviews::VoteVerdict;

use countersign::worker::{expire_leases, rejudge};
use countersign_adapters::clock::{Clock as _, ClockOffset, SystemClock};
use countersign_store::records::LOG;
use countersign_store::row::Table;
use countersign_store::sqlite::SqliteStore;

use serde_json::{Value, json};

use crate::gateway::{POLICY, TestGateway, spawn_on};
use crate::interrupts::asked;
use crate::over::{InterceptedStore, StoreOperation};
use crate::sqlite::unsynced;
use crate::under_new_policy::{activate, policy_of};

/// Every list page and its maximum number of queries. The session takes two of them, the number in the title four, and
/// the people for whom the viewer is a delegate one.
const LISTS: &[(&str, usize)] = &[
    ("/", 18),
    ("/?show=mine", 13),
    ("/?show=soon", 13),
    ("/?show=past", 12),
    ("/?show=denied&flow=payments", 12),
    ("/?show=everything", 14),
    ("/?q=target_user_id", 15),
    ("/?q=00000000", 17),
    ("/insight", 12),
    ("/insight?span=90d&flow=payments", 9),
];

/// The maximum number of queries for each of several decisions, for the page and for the vote with its notifications.
/// The second constant is for all of them together.
const FOR_ONE_OF_SEVERAL: (usize, usize) = (23, 9);
const FOR_ALL_OF_SEVERAL: usize = 15;

/// Starts a gateway that counts the queries to its store.
async fn counted() -> (TestGateway, Arc<AtomicUsize>) {
    // The end of the log is read ten times per second for all pages together, so it is not counted.
    counted_of(|it| it != StoreOperation::LastOf(LOG)).await
}

/// Starts a gateway that counts only some queries.
async fn counted_of(counts: fn(StoreOperation<'_>) -> bool) -> (TestGateway, Arc<AtomicUsize>) {
    let folder = tempfile::tempdir().unwrap();
    let clock = ClockOffset::default();
    let options = unsynced(&clock);
    let inner = SqliteStore::open(folder.path().join("countersign.db"), options).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let ear = move |what: StoreOperation<'_>| {
        if counts(what) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    };
    let store = InterceptedStore::new(Arc::new(inner), ear);
    (spawn_on(folder, clock, store, POLICY).await, asked)
}

#[tokio::test]
async fn open_reviews_are_judged_once_per_policy() {
    let open = |it: StoreOperation<'_>| matches!(it, StoreOperation::Rows(Table::Holds | Table::Interrupts));
    let (g, questions) = counted_of(open).await;
    let held = g.held(&g.thread().await).await;
    g.post("/v1/interrupts", &g.host, asked()).await.expect(202);
    let old = policy_of(&g, &held["transition"]).await;
    activate(&g, &format!("{POLICY}\n# As before.\n"), &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 2);
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 0, "both stand");
    questions.store(0, Ordering::SeqCst);
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 0);
    assert_eq!(questions.load(Ordering::SeqCst), 0, "and are not read again");
    let two = POLICY.replace("need = 1", "need = 2");
    activate(&g, &two, &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 2, "until another policy judges");
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "superseded");
}

#[tokio::test]
async fn old_expired_leases_are_not_read_again() {
    let (g, questions) = counted_of(|it| it == StoreOperation::Rows(Table::Threads)).await;
    let reserved = async |write_id: &str| {
        let thread = g.thread().await;
        let ask = json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": write_id});
        g.post("/v1/verify", &g.writer, ask).await.expect(200);
        thread
    };
    let (_, closed) = (reserved("w1").await, reserved("w2").await);
    let path = format!("/v1/threads/{}", closed["thread"].as_str().unwrap());
    g.pass(Duration::from_secs(31));
    g.post(&format!("{path}/closing"), &g.admin, json!({"reason": "enough"})).await.expect(200);
    g.pass(Duration::from_secs(2 * 3600));
    assert_eq!(expire_leases::run_once(&g.service).await.unwrap(), 1);
    assert_eq!(expire_leases::run_once(&g.service).await.unwrap(), 0);
    let asks = async || {
        questions.store(0, Ordering::SeqCst);
        expire_leases::run_once(&g.service).await.unwrap();
        questions.load(Ordering::SeqCst)
    };
    assert_eq!(asks().await, 1, "what lapsed of late, which is nothing");
    reserved("w3").await;
    g.pass(Duration::from_secs(31));
    assert_eq!(expire_leases::run_once(&g.service).await.unwrap(), 1, "what lapsed since is");
    g.post(&format!("{path}/reopening"), &g.admin, json!({"reason": "more"})).await.expect(200);
    g.pass(Duration::from_secs(600));
    assert_eq!(expire_leases::run_once(&g.service).await.unwrap(), 0, "whoever closed it told of it");
}

#[tokio::test]
async fn queries_for_several_decisions_are_limited_for_each() {
    let (g, questions) = counted().await;
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let field = |html: &str, name: &str| {
        let name = format!("name=\"{name}\" value=\"");
        html.match_indices(&name).map(|(at, _)| html[at..].split('"').nth(3).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (questions, http, url) = (&questions, &g.http, &g.url);
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let ask = async |fields: Vec<(String, String)>| -> (u16, String, usize) {
        questions.store(0, Ordering::SeqCst);
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let form = http.post(format!("{url}/votes")).header("origin", url).body(body.join("&"));
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        let answer = form.header("cookie", format!("countersign={secret}")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap(), questions.load(Ordering::SeqCst))
    };
    for number in [2, 6] {
        let mut fields = Vec::new();
        for _ in 0..number {
            let held = g.held(&g.thread().await).await;
            fields.push(("review".to_owned(), held["review"]["id"].as_str().unwrap().to_owned()));
        }
        let page = g.http.get(&g.url).header("cookie", format!("countersign={secret}")).send().await.unwrap();
        let csrf = ("csrf".to_owned(), field(&page.text().await.unwrap(), "csrf")[0].clone());
        fields.push(csrf.clone());
        let (status, page, read) = ask(fields).await;
        assert_eq!(status, 200, "{page}");
        assert!(read <= FOR_ALL_OF_SEVERAL + number * FOR_ONE_OF_SEVERAL.0, "{number} are read by {read} questions");
        let rows = field(&page, "row").into_iter().map(|it| ("row".to_owned(), it));
        let sheet = ("sheet".to_owned(), field(&page, "sheet")[0].clone());
        let (status, told, voted) =
            ask(rows.chain([csrf, sheet, ("verdict".to_owned(), "approve".to_owned())]).collect()).await;
        assert!(status == 200 && told.contains(&format!("All {number} votes are counted")), "{told}");
        assert!(
            voted <= FOR_ALL_OF_SEVERAL + number * FOR_ONE_OF_SEVERAL.1,
            "{number} are voted on by {voted} questions"
        );
    }
}

#[tokio::test]
async fn list_page_makes_a_fixed_number_of_queries() {
    let (g, questions) = counted().await;
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let mut asked: Vec<Vec<usize>> = Vec::new();
    for round in 0..2 {
        for number in 0..30 {
            let held = g.held(&g.thread().await).await;
            if number % 2 == 0 {
                g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
            }
        }
        let mut counts = Vec::new();
        for (path, most) in LISTS {
            questions.store(0, Ordering::SeqCst);
            let page = g.http.get(format!("{}{path}", g.url)).header("cookie", format!("countersign={secret}"));
            assert_eq!(page.send().await.unwrap().status().as_u16(), 200, "{path}");
            let count = questions.load(Ordering::SeqCst);
            assert!(count <= *most, "{path} asks {count} times in round {round}, at most {most}");
            counts.push(count);
        }
        asked.push(counts);
    }
    assert_eq!(asked[0], asked[1], "twice as many rows are no more questions");
}

/// Monitoring makes a handful of queries, once for all concurrent scrapes.
#[tokio::test]
async fn thousand_scrapes_make_as_many_queries_as_one() {
    let (g, questions) = counted().await;
    for _ in 0..30 {
        let thread = g.thread().await;
        g.held(&thread).await;
    }
    questions.store(0, Ordering::SeqCst);
    let began = SystemClock.instant();
    let scrapes = (0..1_000).map(|_| g.service.operations.metrics_text());
    let texts = futures_util::future::join_all(scrapes).await;
    assert!(texts.iter().all(|it| it.contains("countersign_open_reviews{flow=\"payments\"} 30\n")), "{}", texts[0]);
    let asked = questions.load(Ordering::SeqCst);
    // Values older than two seconds are read again.
    let took = (SystemClock.instant() - began).as_secs();
    assert!((1..=10 * (1 + took / 2)).contains(&u64::try_from(asked).unwrap()), "{asked} questions in {took} s");
}

/// Every page about one thread and every list of history, with its maximum number of queries. `R` is an open review,
/// `D` a denied one, `T` their thread.
const PAGES: &[(&str, usize)] = &[
    ("/reviews/R", 30),
    ("/reviews/D", 30),
    ("/reviews/R/edit", 30),
    ("/threads", 8),
    ("/threads/T", 21),
    ("/threads/T/versions/1", 23),
    ("/threads/T/compare?from=1&to=2", 18),
    ("/log", 8),
    ("/log?thread=T", 12),
    ("/policies", 13),
    ("/rejections", 8),
    ("/emergency", 9),
    ("/account", 9),
];

#[tokio::test]
async fn thread_page_makes_no_more_queries_for_a_long_history() {
    let (g, questions) = counted().await;
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let mut asked: Vec<Vec<usize>> = Vec::new();
    for versions in [60, 120] {
        let thread = g.thread().await;
        let mut head = thread["transition"].clone();
        for number in 0..versions {
            let patch = json!({"raw_text": format!("line {number}")});
            let made = g.propose(&thread["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
            head = made["transition"].clone();
        }
        let ask = async |user: u64| {
            let patch = json!({"target_user_id": user});
            g.propose(&thread["thread"], &head, (&g.planner, "planner"), patch).await.expect(202)
        };
        let denied = ask(42).await;
        g.vote(&g.alice, &denied, VoteVerdict::Deny).await.unwrap();
        let waits = ask(43).await;
        let id = |held: &Value| held["review"]["id"].as_str().unwrap().to_owned();
        let mut counts = Vec::new();
        for (page, most) in PAGES {
            let path = page.replace("/R", &format!("/{}", id(&waits))).replace("/D", &format!("/{}", id(&denied)));
            let path = path.replace("T", thread["thread"].as_str().unwrap());
            questions.store(0, Ordering::SeqCst);
            let answer = g.http.get(format!("{}{path}", g.url)).header("cookie", format!("countersign={secret}"));
            assert_eq!(answer.send().await.unwrap().status().as_u16(), 200, "{path}");
            let count = questions.load(Ordering::SeqCst);
            assert!(count <= *most, "{page} asks {count} times with {versions} versions, at most {most}");
            counts.push(count);
        }
        asked.push(counts);
    }
    // Events of a thread are read in hundreds, so one page may take one query more than another.
    let as_many = asked[0].iter().zip(&asked[1]).all(|(one, other)| one.abs_diff(*other) <= 1);
    assert!(as_many, "twice as long a past is no more questions: {asked:?}");
}
