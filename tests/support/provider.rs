//! A real OpenID provider on loopback: `oidc-provider`, run by node. It is installed below the target directory when
//! it is not there yet.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use countersign_domain::identity::account::PersonRole;
use countersign_domain::identity::oidc_identity::{AdmissionRule, ClaimMapping};
use countersign_domain::primitives::secret::Secret;

use countersign_adapters::oidc_provider::OidcConfig;
use serde_json::{Value, json};

use crate::npm;

pub const AUTHORITY: &[u8] = include_bytes!("../provider/tls/authority.pem");
pub const CLIENT: &str = "countersign";
pub const CLIENT_SECRET: &str = "a secret between gateway and provider";

/// Returns the settings of a provider: members of `fin` are reviewers, members of `ops` are administrators.
pub fn settings(issuer: &str) -> OidcConfig {
    let group = |value: &str, group: &str| (value.to_owned(), group.try_into().unwrap());
    OidcConfig {
        issuer: issuer.to_owned(),
        client_id: CLIENT.to_owned(),
        client_secret: Some(Secret::new(CLIENT_SECRET.to_owned())),
        authority: None,
        scopes: vec!["profile".to_owned(), "groups".to_owned()],
        button: "Sign in with Example".to_owned(),
        name_claim: "preferred_username".to_owned(),
        groups_claim: "groups".to_owned(),
        mapping: ClaimMapping {
            groups: vec![group("fin", "reviewers"), group("sec", "security")],
            roles: vec![("ops".to_owned(), PersonRole::Admin)],
            admit: AdmissionRule::Mapped,
        },
        session: Duration::from_secs(1800),
    }
}

/// Runs until it is dropped.
pub struct RealProvider {
    pub issuer: String,
    asked: Value,
    process: Child,
}

impl RealProvider {
    /// With these people, for the gateway at that address.
    pub fn start(gateway: &str, alg: &str, people: &Value) -> Self {
        Self::speaking(gateway, alg, people, &json!(null))
    }

    /// Starts the provider over HTTPS, with a certificate that the test CA [`AUTHORITY`] signed.
    pub fn start_secure(gateway: &str, people: &Value) -> Self {
        Self::speaking(gateway, "ES256", people, &json!(true))
    }

    fn speaking(gateway: &str, alg: &str, people: &Value, tls: &Value) -> Self {
        let client = json!({
            "client_id": CLIENT,
            "client_secret": CLIENT_SECRET,
            "redirect_uris": [format!("{gateway}/sign-in/oidc/return")],
            "post_logout_redirect_uris": [format!("{gateway}/sign-in")],
        });
        let asked = json!({"alg": alg, "client": client, "people": people, "tls": tls});
        let (process, issuer) = run(&asked);
        Self { issuer, asked, process }
    }

    /// Restarts the provider on the same port with new keys. Its sessions are deleted.
    pub fn restart(&mut self) {
        self.stop();
        let port = self.issuer.rsplit(':').next().unwrap().parse::<u16>().unwrap();
        self.asked["port"] = json!(port);
        let (process, issuer) = run(&self.asked);
        assert_eq!(issuer, self.issuer);
        self.process = process;
    }

    pub fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for RealProvider {
    fn drop(&mut self) {
        // Its standard input ends with us in any case, and it with that.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(asked: &Value) -> (Child, String) {
    let mut process = Command::new("node")
        .arg(folder().join("provider.mjs"))
        .arg(asked.to_string())
        .env("PROVIDER_MODULES", npm::modules("provider"))
        .env("NODE_NO_WARNINGS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("node is installed by ./test");
    let mut issuer = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut issuer).unwrap();
    assert!(issuer.starts_with("http"), "the provider did not start: {issuer:?}");
    (process, issuer.trim().to_owned())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/provider")
}
