//! Addresses, secrets and headers of an endpoint.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::time::Duration;

use countersign_adapters::http_client::{HttpClient, OutboundRequest};
use countersign_domain::delivery::delivery_record::{AttemptOutcome, DeliveryAttempt};
use countersign_domain::delivery::endpoint::Endpoint;
use countersign_domain::delivery::endpoint_kind::EndpointKind;
use countersign_domain::delivery::template::plain_parts;
use countersign_domain::keys::{EncryptedValue, Keys};
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::secret::Secret;
use countersign_store::{LeaderLock, LeaderTask};
use serde_json::Value;
use url::Url;

use crate::delivery::Deliveries;
use crate::error::{Error, Result};

/// Deliveries can be read and sent again for a month.
const DELIVERIES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Replacement for secrets.
const MASK: &str = "[hidden]";

/// A shorter text is not a secret and appears in many responses.
const MASKED_BYTES_MIN: usize = 6;

pub(crate) const CONTENT_TYPE: (&str, &str) = ("content-type", "application/json");

/// Returns the encryption context of an endpoint's URL.
pub(crate) fn url_place(endpoint: &EndpointId) -> String {
    format!("endpoint/{endpoint}/url")
}

/// Returns the encryption context of the URL of the preflight request.
pub(crate) fn look_place(endpoint: &EndpointId) -> String {
    format!("endpoint/{endpoint}/look")
}

/// Returns the encryption context of a header value.
pub(crate) fn header_place(endpoint: &EndpointId, name: &str) -> String {
    format!("endpoint/{endpoint}/header/{name}")
}

pub(crate) fn shown(keys: &Keys, place: &str, hidden: &EncryptedValue) -> Result<Secret<String>> {
    keys.row().show(place, hidden).ok_or(Error::Broken("what an endpoint hides"))
}

/// Returns the parts of a URL that a receiver may repeat: everything after the host, the text between placeholders, and
/// each name and value.
fn parts(url: &Url) -> impl Iterator<Item = Cow<'_, str>> {
    let behind = &url[url::Position::BeforePath..];
    let single = plain_parts(behind).flat_map(|it| it.split(['/', '?', '&', '=']));
    let plain = std::iter::once(behind).chain(plain_parts(behind)).chain(single).map(Cow::Borrowed);
    // A receiver may repeat a query value in its decoded form.
    plain.chain(url.query_pairs().map(|it| it.1))
}

/// URL and headers of an endpoint, decrypted for requests.
#[derive(Clone)]
pub struct DeliveryTarget {
    pub(super) url: Url,
    /// URL of the preflight request of a template.
    pub(super) look: Option<Url>,
    pub(super) headers: Vec<(String, Secret<String>)>,
}

impl DeliveryTarget {
    pub(crate) fn of(keys: &Keys, endpoint: &Endpoint) -> Result<Self> {
        let parsed = |place: &str, hidden: &EncryptedValue| {
            let url = shown(keys, place, hidden)?;
            Url::parse(url.expose()).map_err(|_| Error::Broken("an endpoint's address"))
        };
        let url = parsed(&url_place(&endpoint.id), &endpoint.url)?;
        let look = match &endpoint.kind {
            EndpointKind::Webhook { .. }
            | EndpointKind::LangGraph { .. }
            | EndpointKind::Chat { .. }
            | EndpointKind::Instance { .. } => None,
            EndpointKind::Resume { template } => template.look.as_ref(),
        };
        let look = look.map(|it| parsed(&look_place(&endpoint.id), &it.url)).transpose()?;
        let own = endpoint.headers.iter();
        let own = own.map(|(name, value)| Ok((name.clone(), shown(keys, &header_place(&endpoint.id, name), value)?)));
        Ok(Self { url, look, headers: own.collect::<Result<_>>()? })
    }

    /// Masks the secrets of the request in the result of an attempt, because some receivers repeat their input.
    pub(crate) fn masked(&self, mut attempt: DeliveryAttempt) -> DeliveryAttempt {
        let headers = self.headers.iter().map(|it| it.1.expose().as_str());
        // A receiver may repeat a credential without its scheme, such as `Bearer`.
        let words = headers.flat_map(|it| [it, it.rsplit(' ').next().unwrap_or(it)]).map(Cow::Borrowed);
        let parts = std::iter::once(&self.url).chain(&self.look).flat_map(parts);
        let mut hidden: Vec<_> = words.chain(parts).filter(|it| it.len() >= MASKED_BYTES_MIN).collect();
        // The longest secrets come first. Otherwise a shorter one would split a longer one and leave the rest readable.
        hidden.sort_by_key(|it| Reverse(it.len()));
        if let AttemptOutcome::Answered { body, cut, .. } = &mut attempt.ended {
            for text in &hidden {
                *body = body.replace(text.as_ref(), MASK);
                // A truncated body may end in the middle of a secret.
                let begun =
                    (MASKED_BYTES_MIN..text.len()).filter_map(|it| text.get(..it)).rfind(|it| body.ends_with(it));
                if let Some(begun) = begun.filter(|_| *cut) {
                    body.truncate(body.len() - begun.len());
                    body.push_str(MASK);
                }
            }
        }
        attempt
    }

    /// Builds a request with the custom headers of the endpoint only.
    pub(crate) fn plain(&self, url: Url, body: &Value) -> OutboundRequest {
        self.parcel(url, Vec::new(), body.to_string())
    }

    /// Builds a request with the custom headers of the endpoint.
    pub(crate) fn parcel(&self, url: Url, signed: Vec<(&'static str, String)>, body: String) -> OutboundRequest {
        let own = self.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        let ours = signed.into_iter().chain([(CONTENT_TYPE.0, CONTENT_TYPE.1.to_owned())]);
        let headers = own.chain(ours.map(|(name, value)| (name.to_owned(), Secret::new(value)))).collect();
        OutboundRequest { url, headers, body: body.into_bytes() }
    }
}

/// The leader lock of the gateway that sends. It is released when this is dropped.
pub struct DeliveryLeadership(Box<dyn LeaderLock>);

impl DeliveryLeadership {
    pub fn stands(&self) -> bool {
        self.0.stands()
    }
}

impl Deliveries {
    /// Tries to get the leader lock for sending.
    pub async fn acquire_delivery_lock(&self) -> Result<Option<DeliveryLeadership>> {
        Ok(self.core.store.take(LeaderTask::Sending).await?.map(DeliveryLeadership))
    }

    /// Returns how long deliveries stay readable.
    pub const fn deliveries_kept(&self) -> Duration {
        DELIVERIES_KEPT
    }

    pub fn outgoing(&self) -> Result<&HttpClient> {
        self.outgoing.as_ref().ok_or(Error::WrongState("this gateway does not send to endpoints: sending is disabled"))
    }
}
