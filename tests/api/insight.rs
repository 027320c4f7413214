//! Tests insight: the counts from the log, that each event is counted once, and the page.

use std::time::Duration;

use countersign_domain::log::insight::{BucketWidth, Counts, FlowCounts};
use countersign_domain::reviews::VoteVerdict;

use countersign_service::log::insight::InsightFacts;
use serde_json::json;

use crate::rules::ApiScenario;

on_both! {
    events_are_counted_by_hour_and_day(crate::gateway::POLICY),
    gateways_that_count_at_the_same_time_count_each_event_once(crate::gateway::POLICY),
    earlier_numbers_of_open_reviews_follow_from_the_current_number(crate::gateway::POLICY),
    page_shows_numbers_as_text_and_escapes_its_parameters(crate::gateway::POLICY),
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Sequences and counts every event.
async fn count(scene: &ApiScenario) {
    while scene.gateway.service.log.sequence().await.unwrap() > 0 {}
    while scene.gateway.service.log.count_events().await.unwrap() > 0 {}
}

fn summed(facts: &InsightFacts) -> FlowCounts {
    let mut all = FlowCounts::default();
    facts.figures.iter().flat_map(|it| it.flows.values()).for_each(|it| all.merge(it));
    all
}

/// Makes one review approved after a minute, one denied after eleven, one expired and one open.
async fn lived(scene: &ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    g.pass(MINUTE);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    let held = g.held(&g.thread().await).await;
    g.pass(MINUTE * 11);
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let thread = g.thread().await;
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), json!({"is_admin": true}))
        .await
        .expect(422);
    g.held(&thread).await;
    g.pass(DAY);
    assert_eq!(countersign::worker::expire::run_once(&g.service).await.unwrap(), 1);
    g.held(&g.thread().await).await;
}

async fn events_are_counted_by_hour_and_day(scene: ApiScenario) {
    lived(&scene).await;
    count(&scene).await;
    let facts = scene.gateway.service.log.insight(BucketWidth::Day, 7).await.unwrap();
    assert_eq!((facts.figures.len(), facts.behind, facts.counted.open_reviews(None)), (7, 0, 1));
    let all = summed(&facts);
    let counts = Counts { times: all.all.times.clone(), ..all.all.clone() };
    assert_eq!((counts.opened, counts.approved, counts.denied, counts.expired, counts.rejected), (4, 1, 1, 1, 1));
    assert_eq!(counts.times.count(), 2);
    let within = |percent, secs: std::ops::Range<u64>| {
        let told = counts.times.quantile(percent).unwrap().as_secs();
        assert!(secs.contains(&told), "{percent}: {told}");
    };
    within(50, 56..65);
    within(95, 620..702);
    let reason = all.reasons.keys().next().unwrap();
    assert!(reason.contains("target_user_id"), "{reason}");
    assert_eq!(all.reasons[reason].opened, 4);
    let hours = scene.gateway.service.log.insight(BucketWidth::Hour, 24).await.unwrap();
    assert_eq!(summed(&hours).all.opened, 1, "yesterday's are further back than 24 hours");
    let minutes = scene.gateway.service.log.insight(BucketWidth::Minute, 60).await.unwrap();
    assert_eq!((summed(&minutes), minutes.since), (summed(&hours), None), "by the minute it is the same");
    scene.passes_an_audit().await;
}

async fn gateways_that_count_at_the_same_time_count_each_event_once(scene: ApiScenario) {
    lived(&scene).await;
    while scene.gateway.service.log.sequence().await.unwrap() > 0 {}
    let length = scene.gateway.service.log.log_length().await.unwrap();
    let others = [scene.another().await, scene.another().await];
    let runs = [&scene.gateway.service, &others[0], &others[1]].map(countersign::worker::count_insight::run_once);
    let counted: usize = futures_util::future::join_all(runs).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(counted as u64, length);
    assert_eq!(summed(&others[0].log.insight(BucketWidth::Day, 7).await.unwrap()).all.opened, 4);
    scene.passes_an_audit().await;
}

async fn earlier_numbers_of_open_reviews_follow_from_the_current_number(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(g.held(&g.thread().await).await);
    }
    g.pass(MINUTE * 60);
    g.vote(&g.alice, &held[0], VoteVerdict::Deny).await.unwrap();
    g.pass(MINUTE * 60);
    g.vote(&g.alice, &held[1], VoteVerdict::Approve).await.unwrap();
    count(&scene).await;
    let rows = rows(&page(&scene, "?span=24h").await, "waiting");
    let waited: Vec<&str> = rows.iter().take(4).map(|it| it[3].as_str()).collect();
    assert_eq!(waited, ["1", "2", "3", "0"], "{rows:?}");
}

/// The cells of the table under a chart, the last period first.
fn rows(page: &str, chart: &str) -> Vec<Vec<String>> {
    let figure = page.split(&format!("id=\"{chart}-title\"")).nth(1).unwrap();
    let body = figure.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let cell = |it: &str| it.split('>').next_back().unwrap().to_owned();
    let row = |it: &str| it.split("</t").filter(|it| it.contains("<t")).map(cell).collect();
    body.split("<tr>").skip(1).map(row).collect()
}

async fn page(scene: &ApiScenario, query: &str) -> String {
    let g = &scene.gateway;
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let page = g.http.get(format!("{}/insight{query}", g.url)).header("cookie", format!("countersign={secret}"));
    let answer = page.send().await.unwrap();
    let status = answer.status().as_u16();
    assert_eq!(status, if query.contains("nonsense") { 404 } else { 200 }, "{query}");
    answer.text().await.unwrap()
}

async fn page_shows_numbers_as_text_and_escapes_its_parameters(scene: ApiScenario) {
    assert!(page(&scene, "").await.contains("No reviews in the last 7 days."));
    lived(&scene).await;
    while scene.gateway.service.log.sequence().await.unwrap() > 0 {}
    assert!(page(&scene, "").await.contains("not counted yet"));
    count(&scene).await;
    let told = page(&scene, "").await;
    for words in ["Waiting over time", "Time to decision", "Proposals by outcome", "By flow", "By reason"] {
        assert!(told.contains(words), "{words}");
    }
    assert!(!told.contains("not counted yet") && !told.contains("style="), "{told}");
    let decided = rows(&told, "times").iter().map(|it| it[1].parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(decided, 2);
    assert_eq!(told.matches("<svg class=\"chart-area\" role=\"img\"").count(), 2);
    let of_flow = page(&scene, "?flow=payments&span=90d").await;
    assert!(of_flow.contains("value=\"payments\" selected") && of_flow.contains("<th scope=\"row\">payments"));
    assert!(page(&scene, "?flow=others").await.contains("No reviews in"));
    let current =
        |told: &str| told.split("aria-current=\"page\"").nth(1).unwrap_or_default().chars().take(60).collect();
    let opened: Vec<String> = vec![current(&told), current(&page(&scene, "?span=1h").await)];
    assert_eq!(opened[0], opened[1], "all figures are of the last hour");
    for asked in ["?span=nonsense", "?flow=%22%3E%3Cscript%3Enonsense"] {
        assert!(!page(&scene, asked).await.contains("<script>"), "{asked}");
    }
}
