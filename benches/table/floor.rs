//! What no verify does without: a signed answer, and before it the rows of a reservation, sealed, on the disk, by the same
//! store. Nothing is looked up, judged, limited, counted or logged, and nobody is asked who they are.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::Verification;
use countersign_domain::keys::{KeyUse, Keys};

use actix_web::{App, HttpResponse, HttpServer, web};
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::random::uuid_v7;
use countersign_service::writes::verify::VerifyInput;
use countersign_store::change::{ChangeSet, FacetChange, RowWrite};
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{LIST_ROWS_MAX, RowFilter, Store};
use serde_json::{Value, json};

use super::bare;
use super::house::BenchGateway;
use super::load::LoadRequest;

/// Which rows are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RowSelection {
    /// All of a reservation: the thread's, the write, its event, and the event's place in the queue.
    All,
    /// The thread's and the event: what the protocol has a transaction write, and could not be without.
    ThreadAndEvent,
}

/// The rows of one real reservation, which each of its own is like.
pub struct BaselineCase {
    rows: RowSelection,
    store: Arc<dyn Store>,
    keys: Arc<Keys>,
    write: SealedRow,
    event: SealedRow,
    pending: SealedRow,
    claims: Verification,
    threads: Mutex<HashMap<String, SealedRow>>,
}

impl BaselineCase {
    /// Beside this gateway, in its database.
    pub async fn beside(house: &BenchGateway, rows: RowSelection) -> Arc<Self> {
        let (thread, transition, receipt) = house.approved().await;
        let write_id = uuid_v7(SystemClock.now()).to_string().as_str().try_into().unwrap();
        let ask = VerifyInput { thread, transition, receipt: Some(receipt), write_id, expect: Vec::new() };
        let writer = house.service.identity.token_of(&house.writer).await.unwrap();
        let claims = house.service.writes.verify(&writer, &ask).await.unwrap().write.verification;
        let claims = jws::read::<Verification>(&claims, TokenType::Verification).unwrap().claims_unverified().clone();
        let first = async |table| house.store.list(table, RowFilter::All, None, 1).await.unwrap().swap_remove(0);
        let events = house.store.by_alias_prefix(Table::Events, &format!("{}/", ask.thread), LIST_ROWS_MAX).await;
        let (write, pending) = (first(Table::Writes).await, first(Table::Outbox).await);
        Arc::new(Self {
            rows,
            store: Arc::clone(&house.store),
            keys: house.service.core.keys().unwrap(),
            write,
            event: events.unwrap().pop().unwrap(),
            pending,
            claims,
            threads: Mutex::default(),
        })
    }

    /// Reads the rows of the threads that will be asked about.
    pub async fn know(&self, requests: &[LoadRequest]) {
        let ids: Vec<String> = requests.iter().map(|it| thread(&serde_json::from_str(&it.body).unwrap())).collect();
        for some in ids.chunks(LIST_ROWS_MAX as usize) {
            let rows = self.store.get_many(Table::Threads, some).await.unwrap();
            self.threads.lock().unwrap().extend(rows.into_iter().map(|it| (it.id.clone(), it)));
        }
    }

    fn change(&self, thread: &str) -> ChangeSet {
        let now = SystemClock.now();
        let row = self.threads.lock().unwrap().remove(thread).unwrap();
        let seal = |id: String, facets: Facets, revision: i64, like: &SealedRow| {
            SealedRow::seal(self.keys.row(), like.table, id, facets, revision, like.body.clone())
        };
        let name = uuid_v7(now).to_string();
        let insert = |id: String, like: &SealedRow| {
            let alias = like.facets.alias.as_ref().map(|_| format!("{thread}/{name}"));
            RowWrite::Insert(seal(id, Facets { alias, ..like.facets.clone() }, 1, like))
        };
        let next = seal(row.id.clone(), row.facets.clone(), row.revision + 1, &row);
        let mut writes = vec![
            insert(name.clone(), &self.event),
            RowWrite::Replace { row: next, over: row.mac, moves: FacetChange::Nothing },
        ];
        if self.rows == RowSelection::All {
            writes.extend([insert(format!("writer/{name}"), &self.write), insert(name.clone(), &self.pending)]);
        }
        ChangeSet { decided_at: now, guards: Vec::new(), writes, labels: Vec::new() }
    }
}

fn thread(body: &Value) -> String {
    body["thread"].as_str().unwrap().to_owned()
}

/// Serves it; its port.
pub fn serve(floor: &Arc<BaselineCase>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let floor = web::Data::from(Arc::clone(floor));
    let app = move || App::new().app_data(floor.clone()).route("/v1/verify", web::post().to(answer));
    tokio::spawn(HttpServer::new(app).workers(bare::WORKERS).disable_signals().listen(listener).unwrap().run());
    port
}

async fn answer(floor: web::Data<BaselineCase>, body: web::Bytes) -> HttpResponse {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let verification = jws::sign(floor.keys.signing(KeyUse::Chain), TokenType::Verification, &floor.claims);
    floor.store.commit(floor.change(&thread(&body))).await.unwrap();
    HttpResponse::Ok().json(json!({"allow": true, "verification": verification}))
}
