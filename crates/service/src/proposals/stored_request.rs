//! The stored form of a rejected request: its redacted excerpts, and the request itself if nothing in it is redacted.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::json::patch::PatchFormat;
use countersign_domain::policy::{ComparedValues, Policy, Redactor, Violation, excerpt, hides_nothing};
use countersign_domain::primitives::id::NodeId;
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::AuthorExcerpt;
use serde_json::Value;

use crate::threads::version::Version;

/// A rejected request. It owns its data, so that it can move to another thread.
pub(super) struct RequestToStore {
    pub(super) policy: Arc<Policy>,
    pub(super) head: Arc<Version>,
    /// The nodes whose values the proposer can read.
    pub(super) nodes: BTreeSet<NodeId>,
    /// The parts of the request that others may read.
    pub(super) told: Value,
    pub(super) is_join: bool,
    /// The resolutions of a join, if it has any.
    pub(super) resolve: Option<Value>,
    pub(super) kept: RejectedRequest,
    pub(super) violations: Vec<Violation>,
}

/// The excerpts of a rejected request, and the request itself.
pub(super) struct StoredRequest {
    /// The excerpt for the proposer.
    pub(super) own: AuthorExcerpt,
    /// The excerpt for other readers.
    pub(super) others: AuthorExcerpt,
    /// The request for a later judgement.
    pub(super) request: Option<String>,
}

impl RequestToStore {
    pub(super) fn stored(&self) -> StoredRequest {
        let (format, tool) = (self.kept.format, self.kept.tool.as_ref());
        let own = self.redactor(ComparedValues::WithReadable(&self.nodes), format, &self.told, tool);
        let others = self.redactor(ComparedValues::WithEvery, format, &self.told, tool);
        StoredRequest {
            own: self.excerpt_of(&own),
            others: self.excerpt_of(&others),
            request: self.whole(&own).then(|| self.kept.text()).flatten(),
        }
    }

    fn redactor(
        &self,
        compared: ComparedValues<'_>,
        format: PatchFormat,
        request: &Value,
        tool: Option<&Tool>,
    ) -> Redactor<'_> {
        Redactor::of_request_compared(&self.policy, compared, &self.head.state, format, request, tool)
    }

    /// Returns the redacted excerpt of the request.
    fn excerpt_of(&self, hiding: &Redactor<'_>) -> AuthorExcerpt {
        let cut = |(index, it): (usize, &Violation)| {
            let cut = hiding.cut(&it.pointer);
            (cut != it.pointer).then(|| (index, cut.to_string()))
        };
        let cut = self.violations.iter().enumerate().filter_map(cut).collect();
        AuthorExcerpt { excerpt: excerpt(hiding, self.kept.format, &self.told), cut }
    }

    /// Returns whether the request contains no redacted value that its node can read. The rejection event reveals
    /// whether the request is stored, so this must not depend on values that the node cannot read.
    fn whole(&self, own: &Redactor<'_>) -> bool {
        let kept = &self.kept;
        if !self.is_join {
            return hides_nothing(own, kept.format, &kept.content, kept.tool.as_ref());
        }
        let settles = self.resolve.as_ref().is_none_or(|it| {
            let readable = ComparedValues::WithReadable(&self.nodes);
            let settled = self.redactor(readable, PatchFormat::JsonPatch, it, None);
            hides_nothing(&settled, PatchFormat::JsonPatch, it, None)
        });
        settles && hides_nothing(own, kept.format, &self.told, None)
    }
}
