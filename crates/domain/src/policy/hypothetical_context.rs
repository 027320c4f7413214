//! The assumptions of a dry run: the caller, the tool call, and the thread's history.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::request::{Principal, RequestContext};
use crate::json::pointer::Pointer;
use crate::primitives::id::{NodeId, PrincipalId};
use crate::threads::tool_call::Tool;
use crate::threads::usage::{InvalidUsage, Totals, Usage};

/// An owner is a name of a person or a team.
const OWNER_CHARS_MAX: usize = 200;

const NOT_A_PRINCIPAL: &str = "a principal is an object with `id` and `owner`, and nothing else";
const NOT_AN_ID: &str = "not the id of a principal";
const NOT_AN_OWNER: &str = "an owner is a text of 1 to 200 characters";
const NOT_NODES: &str = "`committed_nodes` must be a list of unique node names";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HypotheticalPrincipal {
    pub id: PrincipalId,
    /// The owner: a person or a team.
    pub owner: String,
}

/// Assumptions of a dry run. A value that is left out is unknown, and a rule that needs it cannot be evaluated.
/// Earlier usage that is left out counts as none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HypotheticalContext {
    pub principal: Option<HypotheticalPrincipal>,
    /// The nodes of which something was committed in the thread.
    pub committed_nodes: Option<BTreeSet<NodeId>>,
    /// Tool call of the request.
    pub tool: Option<Tool>,
    /// Usage that the request would report.
    pub usage: Usage,
    /// Earlier usage of each node in the thread.
    pub totals: Option<Totals>,
}

impl HypotheticalContext {
    /// Reads its members, and takes them out: what is left over is not of it.
    pub fn take(members: &mut Map<String, Value>) -> Result<Self, InvalidUsage> {
        Ok(Self {
            principal: part(members, "principal", principal)?,
            committed_nodes: part(members, "committed_nodes", nodes)?,
            tool: part(members, "tool", Tool::read)?,
            usage: part(members, "usage", Usage::read)?.unwrap_or_default(),
            totals: part(members, "totals", Totals::read)?,
        })
    }

    /// Reads an object with its members and no others.
    pub fn read(value: &Value) -> Result<Self, InvalidUsage> {
        let wrong = |pointer, detail| InvalidUsage { pointer, detail };
        let Value::Object(members) = value else {
            return Err(wrong(Pointer::root(), "the context of a request must be an object"));
        };
        // `take` removes the members that it knows, so the unknown ones remain.
        let mut rest = members.clone();
        let around = Self::take(&mut rest)?;
        match rest.keys().next() {
            Some(key) => Err(wrong(
                Pointer::root().child(key),
                "the context of a request may only have `principal`, `committed_nodes`, `tool`, `usage` and `totals`",
            )),
            None => Ok(around),
        }
    }

    /// Returns the context for a judgement.
    pub fn circumstances(&self) -> RequestContext<'_> {
        let principal = self.principal.as_ref();
        RequestContext {
            principal: principal.map(|it| Principal { id: it.id.as_str(), owner: &it.owner }),
            committed_nodes: self.committed_nodes.as_ref(),
            tool: self.tool.as_ref(),
            // A dry run asks about the policy, and not about the definition of a tool.
            tool_has_changed: false,
            usage: self.usage,
            spent: self.totals.as_ref(),
            // The judgement counts the tokens of the assumed state itself.
            context_tokens: None,
        }
    }
}

fn part<T>(
    members: &mut Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Result<T, InvalidUsage>,
) -> Result<Option<T>, InvalidUsage> {
    let read = |value: Value| read(&value).map_err(|it| it.below(&Pointer::root().child(name)));
    members.remove(name).map(read).transpose()
}

impl HypotheticalPrincipal {
    /// Reads a caller with an id and an owner.
    pub fn new(id: &str, owner: &str) -> Result<Self, InvalidUsage> {
        let at = |name: &str, detail| InvalidUsage { pointer: Pointer::root().child(name), detail };
        let id = PrincipalId::try_from(id).map_err(|_| at("id", NOT_AN_ID))?;
        let fits = (1..=OWNER_CHARS_MAX).contains(&owner.chars().count());
        if fits { Ok(Self { id, owner: owner.to_owned() }) } else { Err(at("owner", NOT_AN_OWNER)) }
    }
}

fn principal(value: &Value) -> Result<HypotheticalPrincipal, InvalidUsage> {
    let wrong = |pointer| InvalidUsage { pointer, detail: NOT_A_PRINCIPAL };
    let Value::Object(members) = value else { return Err(wrong(Pointer::root())) };
    // A misspelled member would otherwise change the result of the dry run without an error.
    if let Some(key) = members.keys().find(|it| !matches!(it.as_str(), "id" | "owner")) {
        return Err(wrong(Pointer::root().child(key)));
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str).ok_or_else(|| wrong(Pointer::root()));
    HypotheticalPrincipal::new(text("id")?, text("owner")?)
}

fn nodes(value: &Value) -> Result<BTreeSet<NodeId>, InvalidUsage> {
    let wrong = |pointer| InvalidUsage { pointer, detail: NOT_NODES };
    let Value::Array(items) = value else { return Err(wrong(Pointer::root())) };
    let mut nodes = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let node = item.as_str().and_then(|it| NodeId::try_from(it).ok());
        if !node.is_some_and(|it| nodes.insert(it)) {
            return Err(wrong(Pointer::root().index(index)));
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests;
