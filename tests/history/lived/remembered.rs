//! Makes a history, and records every revision of its rows.

use super::*;

/// The columns of a row in the database.
pub type RowColumns = Vec<rusqlite::types::Value>;

/// Makes the whole history, and returns the earlier revisions of every row that was replaced.
pub async fn live_through_remembering(service: &Service, file: &Path) -> Vec<(Table, RowColumns)> {
    let mut seen: BTreeMap<(Table, String), RowColumns> = BTreeMap::new();
    let mut older = Vec::new();
    service.identity.set_up_link().await.unwrap().unwrap();
    let cast = cast(service).await;
    look(file, &mut seen, &mut older);
    // The set-up link stays unused here. The sign-in link is used.
    let link = service.identity.sign_in_link(&cast.ben).await.unwrap();
    look(file, &mut seen, &mut older);
    let (ben, _) = service.identity.use_sign_in_link(&link).await.unwrap();
    look(file, &mut seen, &mut older);
    service.identity.sign_out(&ben).await.unwrap();
    uses_passkeys(service, &cast).await;
    look(file, &mut seen, &mut older);
    delegations::ends(service, &cast).await;
    let by = admin();
    service.identity.remove_passkeys_of(&by, "ada").await.unwrap();
    make(service, &cast.host, "t").await;
    look(file, &mut seen, &mut older);
    let (transition, review) =
        held(&propose(service, &cast.agent, "t", "planner", json!({"target_user_id": 42})).await);
    look(file, &mut seen, &mut older);
    look_at_card(service, &cast.ben, &review, transition).await;
    look(file, &mut seen, &mut older);
    count(service).await;
    look(file, &mut seen, &mut older);
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    count(service).await;
    look(file, &mut seen, &mut older);
    let receipt = receipt_of(service, transition).await;
    let allowed = service.writes.verify(&cast.writer, &ask("t", transition, receipt, "w")).await.unwrap();
    look(file, &mut seen, &mut older);
    let by = Revoker::Admin(admin());
    service.writes.revoke_receipt(&by, &allowed.write.receipt.clone().unwrap(), "too late").await.unwrap();
    service.writes.confirm(&cast.writer, &allowed.write.key.write_id, &json!({"result_ref": "row-1"})).await.unwrap();
    look(file, &mut seen, &mut older);
    for proposing in [true, false] {
        let halt = Halt { proposing, verifying: false, reason: "drill".to_owned() };
        for scope in [HaltScope::All, HaltScope::Flow(flow("payments"))] {
            service.operations.set_halt(&admin(), &scope, &halt).await.unwrap();
        }
        look(file, &mut seen, &mut older);
    }
    let asked = interrupts::ask(service, &cast, "1").await;
    look(file, &mut seen, &mut older);
    interrupts::decide(service, &cast.ada, &asked, VoteVerdict::Approve).await;
    look(file, &mut seen, &mut older);
    service.identity.revoke_token(&cast.agent.record.id).await.unwrap();
    look(file, &mut seen, &mut older);
    for admission in [SignInAccess::Barred, SignInAccess::Open, SignInAccess::Barred] {
        service.identity.set_admission("ben", admission).await.unwrap();
        look(file, &mut seen, &mut older);
    }
    older
}

fn look(file: &Path, seen: &mut BTreeMap<(Table, String), RowColumns>, older: &mut Vec<(Table, RowColumns)>) {
    let connection = rusqlite::Connection::open(file).unwrap();
    for table in Table::ALL {
        let sql = format!("SELECT id, alias, owner, state, due, revision, body, key_id, mac FROM {}", table.name());
        let mut statement = connection.prepare(&sql).unwrap();
        let rows =
            statement.query_map([], |row| (0..9).map(|at| row.get(at)).collect::<rusqlite::Result<RowColumns>>());
        for columns in rows.unwrap().map(Result::unwrap) {
            let rusqlite::types::Value::Text(id) = &columns[0] else { panic!("an id is a text") };
            if let Some(before) = seen.insert((*table, id.clone()), columns.clone())
                && before != columns
            {
                older.push((*table, before));
            }
        }
    }
}
