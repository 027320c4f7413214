//! Kills the gateway while it sends events. Every committed event reaches every healthy receiver under one id, and
//! nothing else is sent. The number of repeated deliveries is limited by the number that can be in flight.
//!
//! `TEST_EVENTS=10000 TEST_ENDPOINTS=20` is the whole size; run it with `--release`.

#![expect(clippy::print_stdout, reason = "how much came twice is worth reading")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::delivery::endpoint::EventPattern;
use countersign_domain::identity::account::MachineRole;
use countersign_domain::log::event::Event;
use countersign_domain::primitives::secret::Secret;

use countersign::worker::deliver::{self, DeliveryWorker};
use countersign::worker::sequence;
use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::delivery::endpoint_kind::NewKind;
use countersign_service::delivery::endpoints::NewEndpoint;
use countersign_service::error::Error;
use countersign_service::identity::actor::Actor;
use countersign_service::threads::create::NewThread;
use countersign_store::Store;
use countersign_store::record::RecordReader;
use serde_json::json;

use super::child::{ORDERS, SenderConfig};
use super::gateway;
use super::left::{self, all};
use super::parent::{KillTestHome, settings};
use super::receivers::{BAD, ReceiverBehavior, ReceiverPool};
use super::{open_postgres, open_sqlite};

/// How often the gateway is killed while it sends.
const KILLS: u64 = 6;

/// From so many events on less than one in a hundred deliveries may be made twice.
const WHOLE: u64 = 10_000;

/// How long a gateway that has nothing to send waits before it looks again.
const PAUSE: Duration = Duration::from_millis(20);

/// When so many looks one after the other found nothing new, nothing more comes.
const ROUNDS_WITHOUT_MAX: u32 = 1_500;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |it| it.parse().expect("a number"))
}

/// Every bad manner once, and the rest take what they get.
fn manners(count: usize) -> Vec<ReceiverBehavior> {
    let good = [ReceiverBehavior::Takes, ReceiverBehavior::TakesInOrder, ReceiverBehavior::TakesLate];
    let good = good.into_iter().chain(std::iter::repeat(ReceiverBehavior::Takes));
    BAD.into_iter().chain(good).take(count).collect()
}

async fn add_endpoints(service: &Service, receivers: &ReceiverPool) {
    let token = gateway::token(service, "admin", MachineRole::Admin, &[]).await;
    let admin = service.identity.token_of(&token).await.unwrap();
    for (at, manner) in receivers.all() {
        let new = NewEndpoint {
            name: format!("{manner:?}"),
            kind: NewKind::Webhook,
            url: Secret::new(receivers.url(at)),
            events: BTreeSet::from([EventPattern::all()]),
            flows: BTreeSet::new(),
            ordered: manner == ReceiverBehavior::TakesInOrder,
            headers: BTreeMap::new(),
            after: Some(0),
        };
        service.delivery.add_endpoint(Actor::Token(&admin), &new).await.unwrap();
    }
}

fn start(house: &KillTestHome, sends: SenderConfig) -> Child {
    let mut orders = house.orders();
    orders.sends = Some(sends);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["a_child_with_orders_is_busy_until_it_is_killed", "--nocapture", "--test-threads=1"]);
    command.env(ORDERS, serde_json::to_string(&orders).unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

async fn service(house: &KillTestHome, store: Arc<dyn Store>) -> Arc<Service> {
    let keyring = Keyring::open(house.orders().keyring.as_ref(), None).unwrap();
    let service = Service::open(store, keyring, Arc::new(SystemClock), settings()).await.unwrap();
    Arc::new(service.with_http_client(gateway::outgoing()))
}

/// All kills may come before the log is as long as it is to be; the last gateway makes it so.
async fn fill_the_log(service: &Service, house: &KillTestHome, events: u64) {
    let host = service.identity.token_of(&house.orders().host).await.unwrap();
    while service.log.log_length().await.unwrap() < events {
        let new = NewThread {
            flow: host.record.flow.clone().unwrap(),
            thread: None,
            state: json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10}}),
            context: Default::default(),
            episode: None,
        };
        service.threads.create_thread(&host, &new).await.unwrap();
        // `Busy` is expected: the connection of a killed gateway may end a little later.
        let numbered = sequence::run_once(service).await;
        assert!(matches!(numbered, Ok(_) | Err(Error::Busy)), "{numbered:?}");
    }
}

/// Sends until every healthy receiver has the whole audit log, or until no more events arrive.
async fn send_the_rest(service: &Arc<Service>, receivers: &ReceiverPool) {
    let sender = DeliveryWorker::new(service);
    let (mut had, mut rounds) = (0, 0);
    while rounds < ROUNDS_WITHOUT_MAX {
        // Workers retry when the store is busy. The connections of a killed gateway may end a little later.
        let rounds_done = [sequence::run_once(service).await, sender.round().await];
        assert!(rounds_done.iter().all(|it| matches!(it, Ok(_) | Err(Error::Busy))), "{rounds_done:?}");
        let length = usize::try_from(service.log.log_length().await.unwrap()).unwrap();
        let each: Vec<usize> = receivers.healthy().map(|(at, _)| receivers.of(at, |it| it.times.len())).collect();
        if each.iter().all(|it| *it >= length) {
            break;
        }
        let has = each.iter().sum();
        rounds = if has > had { 0 } else { rounds + 1 };
        had = has;
        tokio::time::sleep(PAUSE).await;
    }
    sender.end(Duration::ZERO).await;
}

async fn killed_while_sending(house: &KillTestHome, open: impl AsyncFn(&KillTestHome) -> Arc<dyn Store>) {
    let events = number("TEST_EVENTS", 300);
    let count = usize::try_from(number("TEST_ENDPOINTS", 10)).unwrap();
    let receivers = ReceiverPool::open(manners(count)).await;
    let first = service(house, open(house).await).await;
    add_endpoints(&first, &receivers).await;
    drop(first);

    // The healthy receivers together get at least this many deliveries, so every kill happens before the end.
    let all_together = events * receivers.healthy().count() as u64;
    let mut moments: Vec<u64> =
        (0..KILLS).map(|_| 1 + u64::from_be_bytes(countersign_adapters::random::bytes()) % all_together).collect();
    moments.sort_unstable();
    for moment in moments {
        let mut child = start(house, SenderConfig { until: events });
        tokio::select! {
            () = receivers.until(moment) => {}
            () = ended(&mut child) => panic!("it ended by itself"),
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    let store = open(house).await;
    let last = service(house, Arc::clone(&store)).await;
    fill_the_log(&last, house, events).await;
    send_the_rest(&last, &receivers).await;
    let wrong = left::look(&*store, &house.keys(), &[]).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    look(all(RecordReader { store: &*store, key: house.keys().row() }).await, &receivers, events);
}

async fn ended(child: &mut Child) {
    while child.try_wait().unwrap().is_none() {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Checks that every healthy receiver has every event of the audit log, and nothing else.
fn look(log: BTreeMap<String, Event>, receivers: &ReceiverPool, events: u64) {
    assert!(log.len() as u64 >= events, "{} events", log.len());
    let (mut all, mut again) = (0, 0);
    for (at, manner) in receivers.healthy() {
        receivers.of(at, |got| {
            let missing: Vec<_> = log.keys().filter(|it| !got.times.contains_key(*it)).collect();
            let beyond: Vec<_> = got.times.keys().filter(|it| !log.contains_key(*it)).collect();
            assert!(missing.is_empty() && beyond.is_empty(), "{manner:?}: not {missing:?}, but {beyond:?}");
            assert!(got.mixed.is_empty(), "{manner:?}: two bodies under {:?}", got.mixed);
            all += got.times.len() as u64;
            again += got.times.values().map(|it| it - 1).sum::<u64>();
            if manner == ReceiverBehavior::TakesInOrder {
                assert_in_order(&log, &got.order);
            }
        });
    }
    assert_eq!(*receivers.trapped.lock().unwrap(), 0, "a redirect was followed");
    let most = KILLS * (deliver::SHARED_MAX + receivers.all().count()) as u64;
    println!("{all} deliveries to who takes them, {again} again after {KILLS} kills");
    assert!(again <= most, "{again} came again, of {all}");
    if events >= WHOLE {
        assert!(again * 100 < all, "{again} came again, of {all}");
    }
}

/// A thread's events come for the first time in its order.
fn assert_in_order(log: &BTreeMap<String, Event>, order: &[String]) {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for event in order.iter().map(|id| &log[id]) {
        if let (Some(thread), Some(seq)) = (&event.thread, event.seq) {
            let before = last.insert(thread.as_str(), seq).unwrap_or(0);
            assert_eq!(seq, before + 1, "of thread {thread}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_sends_on_sqlite_it_sends_everything_and_little_twice() {
    killed_while_sending(&KillTestHome::on_sqlite().await, async |house| Arc::from(open_sqlite(house).await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_sends_on_postgres_it_sends_everything_and_little_twice() {
    killed_while_sending(&KillTestHome::on_postgres().await, async |house| Arc::from(open_postgres(house).await)).await;
}
