//! `/docs`: the description as a page.

use countersign_web::auth::permissions::TABLE;
use countersign_web::client_ip::TrustedProxies;

use crate::gateway::{edge, spawn_gateway};

#[tokio::test]
async fn the_reference_has_every_call_and_type_and_nothing_from_elsewhere() {
    let g = spawn_gateway().await;
    let response = g.http.get(format!("{}/docs", g.url)).header("accept", "text/html").send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let page = response.text().await.unwrap();
    for rule in TABLE.iter().filter(|it| !it.machines.is_empty()) {
        assert!(page.contains(&format!("<code>{}</code>", rule.route)), "{}", rule.route);
    }
    for word in ["head_moved", "idempotency_key_reused", "receipt_missing", "Idempotency-Key", "Last-Event-ID"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("<script") && !page.contains("<style") && !page.contains("//cdn"));
    let anchors: Vec<_> = page.split("href=\"#").skip(1).filter_map(|it| it.split('"').next()).collect();
    assert!(anchors.len() > 300);
    for anchor in anchors {
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor} leads nowhere");
    }
}

#[tokio::test]
async fn api_reference_can_be_switched_off() {
    let g = spawn_gateway().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let edge = countersign_web::state::EdgeConfig { docs: false, ..edge(&url, TrustedProxies::default()) };
    let app = countersign_web::state::AppState::new(g.service.clone(), std::sync::Arc::new(edge));
    tokio::spawn(countersign_web::server::serve(app, listener, 1, std::time::Duration::from_secs(1)).unwrap());
    assert_eq!(g.http.get(format!("{url}/docs")).send().await.unwrap().status().as_u16(), 404);
}
