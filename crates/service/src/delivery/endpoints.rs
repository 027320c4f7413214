//! Manages endpoints: adding, editing, rotating secrets, enabling, disabling and removing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_adapters::random;
use countersign_domain::delivery::endpoint::{
    DeliveryPosition, DisabledReason, ENDPOINTS_MAX, Endpoint, EndpointState, EventPattern,
};
use countersign_domain::delivery::endpoint_kind::EndpointKind;
use countersign_domain::delivery::signature::{EndpointSecrets, RotatedSecret, SecretGeneration, public_keys};
use countersign_domain::delivery::template::braced;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{EndpointId, FlowId};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::record::{ListBounds, Stored};
use serde_json::{Value, json};

use super::endpoint_headers::{headers_that_stay, hidden_headers};
use super::endpoint_kind::NewKind;
use crate::delivery::Deliveries;
use crate::delivery::target::{look_place, shown, url_place};
use crate::error::{Error, Result};
use crate::identity::actor::Actor;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

/// Same limit as for accounts. Names are shown in lists.
const NAME_CHARS_MAX: usize = 64;

/// Pages of the list of endpoints, with those that were removed.
const PAGES_MAX: usize = 100;

/// Maximum time for which an old secret also signs after a rotation.
pub const OVERLAP_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// A requested endpoint.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    pub name: String,
    pub kind: NewKind,
    pub url: Secret<String>,
    pub events: BTreeSet<EventPattern>,
    /// Flows whose events are sent. Empty means all, except for kinds that resume runs.
    pub flows: BTreeSet<FlowId>,
    /// Whether the events of a thread are delivered strictly in order.
    pub ordered: bool,
    pub headers: BTreeMap<String, Secret<String>>,
    /// Log position to start after. Without it, delivery starts with the next event.
    pub after: Option<u64>,
}

/// Requested changes. Members that are not set stay as they are.
#[derive(Clone, Debug, Default)]
pub struct EndpointEdit {
    pub name: Option<String>,
    pub url: Option<Secret<String>>,
    pub events: Option<BTreeSet<EventPattern>>,
    pub flows: Option<BTreeSet<FlowId>>,
    pub headers: Option<BTreeMap<String, Secret<String>>>,
    pub serving: Option<DeliveryActivation>,
}

/// Whether an endpoint is served, and from which position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryActivation {
    Off,
    /// Continues where it stopped and sends everything since then.
    WhereItStopped,
    /// Continues with the next event and skips everything before it.
    Now,
}

/// An endpoint for administrators.
#[derive(Clone, Debug)]
pub struct EndpointDetails {
    pub endpoint: Endpoint,
    pub url: Secret<String>,
    /// Full URL of the request that is sent first, if there is one.
    pub look: Option<Secret<String>>,
    pub lane: DeliveryPosition,
    /// Number of events after that position, of any kind.
    pub beyond: u64,
    /// Keys that verify the second signature, now and after the next rotation.
    pub public_keys: Vec<String>,
}

impl Deliveries {
    /// Adds an endpoint. Its secret appears only in this response. Kinds that sign nothing have no secret.
    pub async fn add_endpoint(
        &self,
        by: Actor<'_>,
        new: &NewEndpoint,
    ) -> Result<(EndpointDetails, Option<Secret<String>>)> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        self.require_room(&keys).await?;
        check_name(&new.name)?;
        let length = self.log.log_length().await?;
        let id = EndpointId::try_from(random::uuid_v7(now).simple().to_string()).expect("a UUID is a name");
        let kind = self.kept(&keys, &id, &new.kind)?;
        self.check_flows(&keys, &kind, &new.flows).await?;
        let (kind, url, origin) = self.addressed(&keys, &id, kind, &new.url)?;
        let endpoint = Endpoint {
            name: new.name.clone(),
            kind,
            url,
            origin,
            events: checked_events(&new.events)?,
            flows: new.flows.clone(),
            ordered: new.ordered,
            headers: hidden_headers(&keys, &id, &new.headers)?,
            secrets: EndpointSecrets { now: SecretGeneration::new(random::bytes(), now), before: None },
            state: EndpointState::Enabled {},
            created_at: now,
            created_by: by.principal(),
            id,
        };
        // A position beyond the end of the log would skip events that do not exist yet.
        let lane = DeliveryPosition::new(endpoint.id.clone(), new.after.unwrap_or(length).min(length));
        let mut draft = Draft::new(keys.row(), now);
        by.rely(&mut draft);
        draft.insert(&endpoint)?;
        draft.insert(&lane)?;
        let facts = json!({"kind": endpoint.kind.name().as_str(), "origin": endpoint.origin, "events": endpoint.events,
            "flows": endpoint.flows, "ordered": endpoint.ordered, "after": lane.reached});
        let data = endpoint_data(by, &endpoint, 1, facts);
        event_recorder::outside(&mut draft, None, now, EventType::EndpointAdded, data)?;
        // Kinds without signatures must not show a secret that protects nothing.
        let secret = endpoint.kind.is_signed().then(|| endpoint.secrets.now.shown(keys.row(), &endpoint.id));
        let added = (self.endpoint_told(&keys, endpoint, lane, length)?, secret);
        self.core.store_response(&mut draft, &keys, &added)?;
        self.core.commit(draft.finish()).await?;
        Ok(added)
    }

    /// Returns all endpoints that were not removed, the oldest first.
    pub async fn endpoints(&self) -> Result<Vec<EndpointDetails>> {
        let (keys, length) = (self.core.keys()?, self.log.log_length().await?);
        let endpoints = self.active_endpoints(&keys).await?;
        let ids: Vec<String> = endpoints.iter().map(|it| it.record.id.to_string()).collect();
        let lanes = self.core.reader(&keys).get_many::<DeliveryPosition>(&ids).await?;
        let mut told = Vec::with_capacity(endpoints.len());
        for endpoint in endpoints {
            let lane = lanes.iter().find(|it| it.record.endpoint == endpoint.record.id);
            let lane = lane.ok_or(Error::Broken("an endpoint's delivery cursor"))?.record.clone();
            told.push(self.endpoint_told(&keys, endpoint.record, lane, length)?);
        }
        Ok(told)
    }

    pub async fn endpoint(&self, id: &EndpointId) -> Result<EndpointDetails> {
        let (keys, length) = (self.core.keys()?, self.log.log_length().await?);
        let (endpoint, lane) = self.endpoint_with_position(&keys, id).await?;
        self.endpoint_told(&keys, endpoint.record, lane.record, length)
    }

    /// Changes the given members and nothing else.
    pub async fn change_endpoint(
        &self,
        by: Actor<'_>,
        id: &EndpointId,
        edit: &EndpointEdit,
    ) -> Result<EndpointDetails> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let length = self.log.log_length().await?;
            let (stored, lane) = self.endpoint_with_position(&keys, id).await?;
            let mut next = stored.record.clone();
            let mut reached = lane.record.clone();
            if let Some(name) = &edit.name {
                check_name(name)?;
                next.name.clone_from(name);
            }
            if let Some(url) = &edit.url {
                (next.kind, next.url, next.origin) = self.addressed(&keys, id, next.kind, url)?;
            }
            if let Some(events) = &edit.events {
                next.events = checked_events(events)?;
            }
            if let Some(flows) = &edit.flows {
                self.check_flows(&keys, &next.kind, flows).await?;
                next.flows.clone_from(flows);
            }
            next.headers = match &edit.headers {
                Some(headers) => hidden_headers(&keys, id, headers)?,
                // Headers contain credentials, which must not go to another server without consent.
                None => headers_that_stay(&stored.record, &next)?,
            };
            if let Some(serving) = edit.serving {
                next.state = match serving {
                    DeliveryActivation::Off => EndpointState::Disabled { at: now, why: DisabledReason::ByHand },
                    DeliveryActivation::WhereItStopped | DeliveryActivation::Now => EndpointState::Enabled {},
                };
                if next.is_served() && !stored.record.is_served() {
                    // The five days before an endpoint is disabled start again.
                    reached.failing_since = None;
                    reached.reached = if serving == DeliveryActivation::Now { length } else { reached.reached };
                }
            }
            let mut draft = Draft::new(keys.row(), now);
            by.rely(&mut draft);
            draft.replace(&stored, &next)?;
            if reached != lane.record {
                draft.replace(&lane, &reached)?;
            }
            let facts = json!({"origin": next.origin, "events": next.events, "flows": next.flows,
            "serving": next.is_served(), "after": reached.reached,
            "address_changed": edit.url.is_some(), "headers_changed": edit.headers.is_some()});
            let data = endpoint_data(by, &next, stored.revision + 1, facts);
            event_recorder::outside(&mut draft, None, now, EventType::EndpointChanged, data)?;
            self.core.commit(draft.finish()).await?;
            self.endpoint_told(&keys, next, reached, length)
        })
    }

    /// Creates a new secret. The old one also signs for the given time.
    pub async fn rotate_endpoint_secret(
        &self,
        by: Actor<'_>,
        id: &EndpointId,
        overlap: Duration,
    ) -> Result<(Secret<String>, Timestamp)> {
        if overlap > OVERLAP_MAX {
            return Err(Error::invalid(
                "/overlap_secs",
                "the old secret can be valid for at most seven days: use up to 604800",
            ));
        }
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let (stored, _) = self.endpoint_with_position(&keys, id).await?;
            if !stored.record.kind.is_signed() {
                return Err(Error::WrongState("the gateway makes no secret for endpoints of this kind"));
            }
            let until = now.plus(overlap);
            // Receivers need time to learn the new secret, so both sign during the overlap.
            let before = Some(RotatedSecret { generation: stored.record.secrets.now.clone(), until });
            let secrets = EndpointSecrets { now: SecretGeneration::new(random::bytes(), now), before };
            let next = Endpoint { secrets, ..stored.record.clone() };
            let mut draft = Draft::new(keys.row(), now);
            by.rely(&mut draft);
            draft.replace(&stored, &next)?;
            let facts = json!({"before_until": until});
            let data = endpoint_data(by, &next, stored.revision + 1, facts);
            event_recorder::outside(&mut draft, None, now, EventType::EndpointSecretMade, data)?;
            let made = (next.secrets.now.shown(keys.row(), id), until);
            self.core.store_response(&mut draft, &keys, &made)?;
            self.core.commit(draft.finish()).await?;
            Ok(made)
        })
    }

    /// Removes an endpoint. Its deliveries stay readable as long as those of other endpoints.
    pub async fn remove_endpoint(&self, by: Actor<'_>, id: &EndpointId) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let (stored, _) = self.endpoint_with_position(&keys, id).await?;
            // The row stays, because deliveries and audits refer to it.
            let next = Endpoint { state: EndpointState::Removed { at: now }, ..stored.record.clone() };
            let mut draft = Draft::new(keys.row(), now);
            by.rely(&mut draft);
            draft.replace(&stored, &next)?;
            let data = endpoint_data(by, &next, stored.revision + 1, json!({}));
            event_recorder::outside(&mut draft, None, now, EventType::EndpointRemoved, data)?;
            self.core.commit(draft.finish()).await
        })
    }

    /// Returns an endpoint that was not removed, with its delivery cursor.
    pub(super) async fn endpoint_with_position(
        &self,
        keys: &Keys,
        id: &EndpointId,
    ) -> Result<(Stored<Endpoint>, Stored<DeliveryPosition>)> {
        let endpoint = self.core.need::<Endpoint>(keys, id.as_str(), "endpoint").await?;
        if endpoint.record.is_removed() {
            return Err(Error::NotFound("endpoint"));
        }
        let lane = self.core.fetch::<DeliveryPosition>(keys, id.as_str()).await?;
        Ok((endpoint, lane.ok_or(Error::Broken("an endpoint's delivery cursor"))?))
    }

    /// Fails if there are as many endpoints as there may be.
    pub(super) async fn require_room(&self, keys: &Keys) -> Result<()> {
        if self.active_endpoints(keys).await?.len() < ENDPOINTS_MAX {
            return Ok(());
        }
        Err(Error::WrongState("there are already 200 endpoints, which is the maximum: remove one first"))
    }

    /// Returns the endpoints that were not removed.
    pub(super) async fn active_endpoints(&self, keys: &Keys) -> Result<Vec<Stored<Endpoint>>> {
        let mut all = self.all_endpoints(keys).await?;
        all.retain(|it| !it.record.is_removed());
        Ok(all)
    }

    /// Returns all endpoints, including removed ones.
    pub(super) async fn all_endpoints(&self, keys: &Keys) -> Result<Vec<Stored<Endpoint>>> {
        let all = self.core.reader(keys).select(RowFilter::All, None, ListBounds::pages(PAGES_MAX), Some).await?;
        // An endpoint that is left out would never be served.
        match all.is_complete {
            true => Ok(all.items),
            false => Err(Error::WrongState("there are more endpoints than the gateway can list")),
        }
    }

    fn endpoint_told(
        &self,
        keys: &Keys,
        endpoint: Endpoint,
        lane: DeliveryPosition,
        length: u64,
    ) -> Result<EndpointDetails> {
        let url = shown(keys, &url_place(&endpoint.id), &endpoint.url)?;
        let beyond = length.saturating_sub(lane.reached);
        let template = match &endpoint.kind {
            EndpointKind::Resume { template } => Some(template),
            EndpointKind::Webhook { .. }
            | EndpointKind::LangGraph { .. }
            | EndpointKind::Chat { .. }
            | EndpointKind::Instance { .. } => None,
        };
        // Placeholders were encoded for storage. Administrators see them as they typed them.
        let as_typed = |it: Secret<String>| Secret::new(braced(it.expose()));
        let url = if template.is_some() { as_typed(url) } else { url };
        let look = template.and_then(|it| it.look.as_ref());
        let look = look.map(|it| shown(keys, &look_place(&endpoint.id), &it.url).map(as_typed)).transpose()?;
        Ok(EndpointDetails { endpoint, url, look, lane, beyond, public_keys: public_keys(keys) })
    }

    async fn check_flows(&self, keys: &Keys, kind: &EndpointKind, flows: &BTreeSet<FlowId>) -> Result<()> {
        // Without flows, a host of any flow could have these runs resumed.
        if kind.resumes() && flows.is_empty() {
            return Err(Error::invalid("/flows", "name the flows whose runs this endpoint resumes"));
        }
        for flow in flows {
            self.core
                .flow(keys, flow)
                .await
                .map_err(|_| Error::invalid("/flows", "one of these flows does not exist"))?;
        }
        Ok(())
    }
}

/// Returns the data of an endpoint's event: these facts, the endpoint and the actor.
pub(super) fn endpoint_data(by: Actor<'_>, endpoint: &Endpoint, revision: i64, mut facts: Value) -> Value {
    facts["endpoint"] = json!(endpoint.id);
    facts["name"] = json!(endpoint.name);
    // An audit compares the row with this hash.
    facts["row"] = json!(endpoint.hash());
    facts["revision"] = json!(revision);
    facts["by"] = json!(by.principal());
    facts["by_name"] = json!(by.name());
    facts
}

fn check_name(name: &str) -> Result<()> {
    let printable = name.chars().all(|it| !it.is_control()) && !name.trim().is_empty();
    let fits = printable && name.chars().count() <= NAME_CHARS_MAX;
    if fits { Ok(()) } else { Err(Error::invalid("/name", "use 1 to 64 visible characters")) }
}

fn checked_events(events: &BTreeSet<EventPattern>) -> Result<BTreeSet<EventPattern>> {
    let none = || Error::invalid("/events", "name at least one event, or `*` for all");
    if events.is_empty() { Err(none()) } else { Ok(events.clone()) }
}
