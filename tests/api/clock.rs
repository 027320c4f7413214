//! Tests a clock that went back. The gateway refuses to start, and logs it while running.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::PersonRole;
use countersign_domain::reviews::VoteVerdict;

use countersign::cli::CliError;
use countersign::cli::serve::{ClockPolicy, RunningGateway};
use countersign::config::{Config, Flags};
use countersign::worker::clock::ClockWatch;
use countersign_adapters::clock::ClockOffset;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::identity::accounts::NewAccount;
use countersign_store::sqlite::SqliteStore;

use crate::gateway::{MovedClock, TestGateway, person, settings};
use crate::rules::ApiScenario;
use crate::sqlite::unsynced;

on_both! {
    clock_behind_the_newest_event_is_measured_and_stops_nothing(crate::gateway::POLICY),
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// From now on the clock is right again, which was that much ahead.
fn set_back(g: &TestGateway) {
    g.clock.set_millis(0);
}

async fn clock_behind_the_newest_event_is_measured_and_stops_nothing(scene: ApiScenario) {
    let (g, watch) = (&scene.gateway, ClockWatch::default());
    let behind = async || {
        watch.run_once(&g.service).await.unwrap();
        let text = g.service.operations.metrics_text().await;
        let line = text.lines().find_map(|it| it.strip_prefix("countersign_clock_behind_seconds "));
        line.unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(behind().await, 0.0);
    g.pass(DAY);
    g.thread().await;
    set_back(g);
    let seconds = behind().await;
    assert!((DAY.as_secs_f64() - 60.0..=DAY.as_secs_f64() + 60.0).contains(&seconds), "{seconds}");
    let held = g.held(&g.thread().await).await;
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    g.pass(DAY + DAY);
    assert_eq!(behind().await, 0.0);
}

/// The gateway of that configuration, by a clock that is a day ahead.
async fn a_day_ahead(config: &Config) -> Service {
    let clock = ClockOffset::default();
    clock.set_millis(i64::try_from(DAY.as_millis()).unwrap());
    let options = unsynced(&clock);
    let store = Arc::new(SqliteStore::open(config.sqlite_path(), options).unwrap());
    let keyring = Keyring::existing(&config.keyring, None).unwrap();
    Service::open(store, keyring, Arc::new(MovedClock(clock)), settings("http://localhost:1")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_with_a_clock_that_went_back_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("COUNTERSIGN_DATA", folder.path().to_str().unwrap().to_owned())];
    let config = Config::load(&Flags::default(), variables.map(|(name, value)| (name.into(), value.into()))).unwrap();
    let start = async |back| RunningGateway::start(&config, TcpListener::bind("127.0.0.1:0").unwrap(), back).await;
    let running = start(ClockPolicy::Refused).await.unwrap();
    person(&running.service, "ana", &[]).await;
    running.stop().await.unwrap();
    // An account is added while the clock is a day ahead.
    let ahead = a_day_ahead(&config).await;
    let new = NewAccount { name: "ben".to_owned(), role: PersonRole::Reviewer, groups: Default::default() };
    ahead.identity.add_account(&new, "correct horse battery".to_owned()).await.unwrap();
    drop(ahead);
    let Err(CliError::Clock(behind)) = start(ClockPolicy::Refused).await.map(drop) else { panic!("it started") };
    assert!(behind.by() > DAY - Duration::from_secs(60), "{behind}");
    let told = CliError::Clock(behind).to_string();
    assert!(told.contains("--clock-was-ahead") && told.contains("before the newest event"), "{told}");
    let mut started = start(ClockPolicy::Allowed).await;
    for _ in 0..50 {
        // The refused gateway can hold its database for a moment longer.
        if started.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        started = start(ClockPolicy::Allowed).await;
    }
    started.unwrap().stop().await.unwrap();
}
