use actix_web::http::StatusCode;
use actix_web::{App, test, web};

use super::{asset, exists, serve};

async fn get(path: &str) -> actix_web::dev::ServiceResponse {
    let app = test::init_service(App::new().route("/assets/{name:.+}", web::get().to(serve))).await;
    test::call_service(&app, test::TestRequest::get().uri(path).to_request()).await
}

#[actix_web::test]
async fn asset_is_cached_permanently_under_its_hashed_name() {
    let url = asset("css/base.css");
    assert!(url.starts_with("/assets/css/base.") && url.ends_with(".css") && url.len() > "/assets/css/base.css".len());
    let answer = get(&url).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers().get("content-type").unwrap(), "text/css; charset=utf-8");
    assert!(answer.headers().get("cache-control").unwrap().to_str().unwrap().contains("immutable"));
    assert_eq!(answer.headers().get("x-content-type-options").unwrap(), "nosniff");
}

#[actix_web::test]
async fn an_asset_is_not_served_under_its_plain_name_or_another_hash() {
    for path in ["/assets/css/base.css", "/assets/css/base.0000000000000000.css", "/assets/../Cargo.toml"] {
        assert_eq!(get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[::core::prelude::v1::test]
fn every_asset_that_a_template_names_exists() {
    let mut named = 0;
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../templates"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for rest in text.split("asset(\"").skip(1) {
                let name = rest.split('"').next().unwrap();
                assert!(exists(name), "{} names {name}", path.display());
                named += 1;
            }
        }
    }
    assert!(named > 3, "the walk saw the templates");
}
