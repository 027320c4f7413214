//! Creates instances of an agent: a credential that expires, and a receiver that is woken when a request is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_adapters::http_client::{HttpOutcome, OutboundRequest};
use countersign_adapters::random;
use countersign_domain::delivery::endpoint::{DeliveryPosition, Endpoint, EndpointKind, EndpointState, EventPattern};
use countersign_domain::delivery::instance_receiver::{
    InstanceReceiver, ReceiverContent, ReceiverMessage, ReceiverSecret, is_registration, is_verified,
};
use countersign_domain::delivery::signature::{EndpointSecrets, SecretGeneration};
use countersign_domain::identity::account::{MachineRole, Token};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::{EndpointId, EventId, FlowId, TokenId};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::approval_request::{ApprovalRequestError, id_in};
use countersign_domain::threads::thread::Thread;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;
use url::Url;

use super::endpoints::endpoint_data;
use super::target::{CONTENT_TYPE, shown, url_place};
use crate::delivery::Deliveries;
use crate::delivery::target::DeliveryTarget;
use crate::error::{Error, Result};
use crate::identity::accounts::{NewToken, check_name, draft_token, new_token};
use crate::identity::actor::Actor;
use crate::identity::owner_names::NewOwner;
use crate::platform::event_recorder;

/// The lifetime of an instance's credential. Its creator makes a new instance before.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// An instance to create.
#[derive(Clone, Debug)]
pub struct NewInstance {
    pub name: Option<String>,
    pub receiver: Option<NewReceiver>,
}

/// The receiver of a new instance. It must be serving already.
#[derive(Clone, Debug)]
pub struct NewReceiver {
    pub url: Secret<String>,
    pub registration: String,
    pub secret: Secret<String>,
}

/// A new instance. The secret appears only here.
#[derive(Clone, Debug)]
pub struct CreatedInstance {
    pub token: Token,
    pub secret: Secret<String>,
    pub expires_at: Timestamp,
}

impl Deliveries {
    /// Creates an instance of the provisioner's node. The provisioner's owner owns it.
    pub async fn create_instance(&self, by: &Stored<Token>, new: &NewInstance) -> Result<CreatedInstance> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let (flow, expires_at) = (by.record.flow.clone().ok_or(Error::NotFound("flow"))?, now.plus(LIFETIME));
        if let Some(name) = &new.name {
            check_name("/instance_name", name)?;
        }
        let wanted = NewToken {
            name: new.name.clone().unwrap_or_default(),
            role: MachineRole::Instance,
            owner: NewOwner::Existing(by.record.owner.clone()),
            flow: Some(flow.clone()),
            nodes: by.record.nodes.clone(),
        };
        let (mut token, secret) = new_token(&wanted, by.record.owner.clone(), now);
        if new.name.is_none() {
            token.name = format!("instance-{}", token.id);
        }
        token.expires_at = Some(expires_at);
        let endpoint = match &new.receiver {
            Some(receiver) => Some(self.verified(&keys, by, &token, receiver).await?),
            None => None,
        };
        // The receiver may have taken a while.
        let (keys, now) = (self.core.keys()?, self.core.now());
        let actor = Actor::Token(by);
        let mut draft = Draft::new(keys.row(), now);
        draft_token(&mut draft, &token, Some(actor))?;
        if let Some(endpoint) = &endpoint {
            draft.insert(endpoint)?;
            // Requests are asked later, so nothing before this concerns the instance.
            let lane = DeliveryPosition::new(endpoint.id.clone(), self.log.log_length().await?);
            draft.insert(&lane)?;
            let facts = json!({"kind": endpoint.kind.name().as_str(), "origin": endpoint.origin,
                "events": endpoint.events, "flows": endpoint.flows, "ordered": endpoint.ordered,
                "after": lane.reached, "token": token.id});
            let data = endpoint_data(actor, endpoint, 1, facts);
            event_recorder::outside(&mut draft, None, now, EventType::EndpointAdded, data)?;
        }
        let created = CreatedInstance { token, secret: Secret::new(secret), expires_at };
        self.core.store_response(&mut draft, &keys, &created)?;
        self.core.commit(draft.finish()).await?;
        Ok(created)
    }

    /// Verifies a receiver, and returns its endpoint.
    async fn verified(&self, keys: &Keys, by: &Stored<Token>, token: &Token, new: &NewReceiver) -> Result<Endpoint> {
        self.require_room(keys).await?;
        let wrong = |member: &str, why: &str| Error::invalid(&format!("/delivery/{member}"), why);
        let secret = ReceiverSecret::read(new.secret.expose())
            .ok_or_else(|| wrong("signing_secret", "send `whsec_` and 24 to 64 random bytes as base64"))?;
        if !is_registration(&new.registration) {
            return Err(wrong("registration_id", "send 1 to 128 visible ASCII characters, such as a UUID"));
        }
        let url = self.outgoing()?.admits(new.url.expose()).map_err(|it| wrong("url", &it.to_string()))?;
        let (challenge, now) = (random::uuid_v4().to_string(), self.core.now());
        let content =
            ReceiverContent::Verification { registration: new.registration.clone(), challenge: challenge.clone() };
        let message = ReceiverMessage { id: new_id(now), instance: token.id.clone(), at: now, content };
        let request = signed(&message, &secret, &url, now)?;
        match self.outgoing()?.post(&request).await {
            HttpOutcome::Answered(it) if !it.cut && is_verified(&challenge, it.status, &it.body) => {}
            HttpOutcome::Answered(_) | HttpOutcome::Failed(_) => {
                return Err(ApprovalRequestError::ReceiverNotVerified.into());
            }
        }
        let id = EndpointId::try_from(random::uuid_v7(now).simple().to_string()).expect("a UUID is a name");
        let hide = |place: &str, text: &str| keys.row().hide(place, text, random::bytes());
        let receiver = InstanceReceiver {
            instance: token.id.clone(),
            registration: new.registration.clone(),
            secret: hide(&secret_place(&id), new.secret.expose()),
        };
        Ok(Endpoint {
            name: token.name.clone(),
            kind: EndpointKind::Instance { receiver },
            url: hide(&url_place(&id), url.as_str()),
            origin: url.origin().ascii_serialization(),
            events: BTreeSet::from([EventPattern::all()]),
            flows: token.flow.iter().cloned().collect::<BTreeSet<FlowId>>(),
            ordered: false,
            headers: BTreeMap::new(),
            secrets: EndpointSecrets { now: SecretGeneration::new(random::bytes(), now), before: None },
            state: EndpointState::Enabled {},
            created_at: now,
            created_by: by.record.principal(),
            id,
        })
    }

    /// Returns whether an event ends an approval request of the instance.
    pub(super) async fn is_of_instance(&self, receiver: &InstanceReceiver, event: &Event) -> Result<bool> {
        let Some(thread) = event.thread.as_ref().filter(|it| id_in(it).is_some()) else { return Ok(false) };
        let thread = self.core.fetch::<Thread>(&*self.core.keys()?, thread.as_str()).await?;
        let instance = thread.and_then(|it| it.record.request).map(|it| it.instance);
        Ok(instance.is_some_and(|it| it.as_str() == receiver.instance.as_str()))
    }

    /// Returns the message that a request of the instance is decided, signed now. `None` if the credential has ended.
    pub(super) async fn wake(
        &self,
        endpoint: &Endpoint,
        receiver: &InstanceReceiver,
        address: &DeliveryTarget,
        event: &Event,
    ) -> Result<Option<OutboundRequest>> {
        if !self.is_valid(&receiver.instance).await? {
            return Ok(None);
        }
        let secret = shown(&*self.core.keys()?, &secret_place(&endpoint.id), &receiver.secret)?;
        let secret = ReceiverSecret::read(secret.expose()).ok_or(BROKEN)?;
        signed(&resolved(receiver, event)?, &secret, &address.url, self.core.now()).map(Some)
    }

    /// Removes the endpoints of instances whose credential has ended. Returns how many.
    pub async fn remove_ended_instances(&self) -> Result<usize> {
        let (keys, mut removed) = (self.core.keys()?, 0);
        for stored in self.active_endpoints(&keys).await? {
            let EndpointKind::Instance { receiver } = &stored.record.kind else { continue };
            if self.is_valid(&receiver.instance).await? {
                continue;
            }
            let now = self.core.now();
            let next = Endpoint { state: EndpointState::Removed { at: now }, ..stored.record.clone() };
            let mut draft = Draft::new(keys.row(), now);
            draft.replace(&stored, &next)?;
            let data = json!({"endpoint": next.id, "name": next.name, "row": next.hash(),
                "revision": stored.revision + 1, "token": receiver.instance});
            event_recorder::outside(&mut draft, None, now, EventType::EndpointRemoved, data)?;
            self.core.commit(draft.finish()).await?;
            removed += 1;
        }
        Ok(removed)
    }

    async fn is_valid(&self, token: &TokenId) -> Result<bool> {
        let token = self.core.fetch::<Token>(&*self.core.keys()?, token.as_str()).await?;
        Ok(token.is_some_and(|it| it.record.is_valid(self.core.now())))
    }
}

const BROKEN: Error = Error::Broken("the secret of a receiver");

/// Returns the message that a request is decided.
pub(super) fn resolved(receiver: &InstanceReceiver, event: &Event) -> Result<ReceiverMessage> {
    let request = event.thread.as_ref().and_then(|it| id_in(it)).ok_or(Error::Broken("an approval request's id"))?;
    let content = ReceiverContent::Resolved { request: request.to_owned() };
    Ok(ReceiverMessage { id: event.id.clone(), instance: receiver.instance.clone(), at: event.at, content })
}

/// Returns the encryption context of a receiver's secret.
fn secret_place(endpoint: &EndpointId) -> String {
    format!("endpoint/{endpoint}/receiver")
}

fn new_id(now: Timestamp) -> EventId {
    EventId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name")
}

fn signed(message: &ReceiverMessage, secret: &ReceiverSecret, url: &Url, now: Timestamp) -> Result<OutboundRequest> {
    let body = message.body();
    let headers = secret.headers(&message.id, now, &body).ok_or(BROKEN)?;
    let headers = headers.into_iter().chain([(CONTENT_TYPE.0, CONTENT_TYPE.1.to_owned())]);
    let headers = headers.map(|(name, value)| (name.to_owned(), Secret::new(value))).collect();
    Ok(OutboundRequest { url: url.clone(), headers, body: body.into_bytes() })
}
