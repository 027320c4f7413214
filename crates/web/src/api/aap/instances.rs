//! `POST /aap/v1/instances`: instances of an agent, with their own credentials.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::delivery::Deliveries;
use countersign_service::delivery::instances::{CreatedInstance, NewInstance, NewReceiver};
use countersign_service::error::{Error, Result};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::present;
use crate::api::idempotency_key::{IdempotentPost, told};
use crate::state::Capability;

/// The body of `POST /aap/v1/instances`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInstanceRequest {
    /// A name for people. By default, the gateway makes one.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 64, pattern = "^[\\p{L}\\p{N}._@-]+$")]
    pub instance_name: Option<String>,
    /// The receiver of notifications. Without it, the instance asks for decisions.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    pub delivery: Option<InstanceDelivery>,
}

/// The receiver of an instance's notifications.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceDelivery {
    /// The kind of receiver: `webhook`.
    #[serde(rename = "type")]
    #[schema(pattern = "^webhook$")]
    pub kind: String,
    /// The address of the receiver. It must be serving already.
    pub url: String,
    /// The id by which the receiver knows this registration.
    #[schema(min_length = 1, max_length = 128)]
    pub registration_id: String,
    /// The secret that signs all messages: `whsec_` and 24 to 64 random bytes as base64.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=")]
    pub signing_secret: String,
}

/// A new instance.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstanceResponse {
    /// The instance.
    pub instance: InstanceView,
    /// Its credential.
    pub credential: InstanceCredential,
}

/// An instance of an agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstanceView {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
}

/// The credential of an instance.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstanceCredential {
    /// The token. It is in this response only, so store it.
    pub token: String,
    /// The time at which it stops working.
    pub expires_at: Timestamp,
}

impl InstanceResponse {
    fn of(created: &CreatedInstance) -> Self {
        let CreatedInstance { token, secret, expires_at } = created;
        Self {
            instance: InstanceView { id: token.id.to_string(), name: token.name.clone() },
            credential: InstanceCredential { token: secret.expose().clone(), expires_at: *expires_at },
        }
    }
}

/// Create an instance of an agent.
///
/// Returns 201 with a credential that works for 30 days. The instance acts as the provisioner's node. If there is a
/// receiver, the gateway first sends it a signed `webhook.verification`, and later a signed `request.resolved` for each
/// decided request. Returns 422 `webhook_verification_failed` if the receiver does not answer with the challenge.
/// `Idempotency-Key` is required; the same key again returns the same instance.
#[utoipa::path(
    post, path = "/aap/v1/instances", tag = "approval requests", request_body = CreateInstanceRequest,
    responses((status = 201, description = "The instance is created", body = InstanceResponse))
)]
pub async fn create_instance(delivery: Capability<Deliveries>, post: IdempotentPost) -> Result<HttpResponse> {
    post.required_key()?;
    let ask: CreateInstanceRequest = post.read()?;
    if ask.delivery.as_ref().is_some_and(|it| it.kind != "webhook") {
        return Err(Error::invalid("/delivery/type", "the only kind of receiver is `webhook`"));
    }
    let receiver = ask.delivery.map(|it| NewReceiver {
        url: Secret::new(it.url),
        registration: it.registration_id,
        secret: Secret::new(it.signing_secret),
    });
    let new = NewInstance { name: ask.instance_name, receiver };
    let work = delivery.create_instance(&post.token, &new);
    post.once(work, |_, created: &CreatedInstance| Ok(told(StatusCode::CREATED, &InstanceResponse::of(created)))).await
}
