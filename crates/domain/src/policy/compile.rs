//! Compiles the policy text into a `Policy`. An unknown key is an error, because a skipped rule would not be enforced.

mod context;
mod escalation;
mod retain;
mod reviewers;
mod rules;
pub(super) mod tools;
pub(super) mod transitions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bounds;
use super::error::{PolicyCode, PolicyError};
use super::model::{
    ApprovalPolicy, ApprovalScope, CommentRule, ConfirmationRule, NodePolicy, PasskeyRule, Policy,
    PolicyChangeApproval, PolicyStage,
};
use super::pattern_set::Patterns;
use super::policy_source::PolicySource;
use super::redaction::detectors::Detectors;
use super::toml_reader::{TomlItem, TomlSection, parse};
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;
use crate::primitives::id::{FlowId, GroupName, NodeId};
use crate::schema::{self, Openness, Schema, SchemaSource};
use crate::threads::flow::Mode;

const KEYS: &[&str] = &[
    "flow",
    "schema",
    "mode",
    "trust_initial",
    "on_violation",
    "protected",
    "nodes",
    "transitions",
    "rules",
    "tools",
    "budgets",
    "join",
    "context",
    "retain",
    "steps",
    "approval",
    "redaction",
];
const NODE_KEYS: &[&str] = &[
    "reads",
    "writes",
    "deny",
    "schema",
    "writer",
    "rollback",
    "fork",
    "tools",
    "budget",
    "max_tokens",
    "priority",
    "requires",
    "receives",
];
const APPROVAL_KEYS: &[&str] = &[
    "covers",
    "ttl",
    "receipt_ttl",
    "write_lease",
    "attempts",
    "attempts_within",
    "denials",
    "stages",
    "remind_after",
    "escalate_after",
    "escalate_to",
    "policy",
];
const STAGE_KEYS: &[&str] = &["groups", "need", "comment", "confirm", "passkey", "passkey_within"];
const AMENDING_KEYS: &[&str] = &["groups", "need", "comment", "passkey", "passkey_within", "ttl"];
const JOIN_KEYS: &[&str] = &["confidence"];
const REDACTION_KEYS: &[&str] = &["hide", "detect", "patterns", "reveal_to"];

impl Policy {
    /// Compiles a policy, or returns the first mistake with its position.
    pub fn compile(source: &PolicySource) -> Result<Self, PolicyError> {
        check_sizes(source)?;
        let document = parse(&source.text)?;
        let root = TomlSection::root(&source.text, &document);
        root.expect_keys(KEYS)?;
        let mut nodes = read_nodes(&root, source)?;
        let (hidden, detectors, reveal_to) = read_redaction(&root)?;
        // `protected`, rules and budgets are checked against the approval stages, so the stages are read before them.
        let approval = read_approval(&root, nodes.values().any(|node| node.writer))?;
        tools::read_node_budgets(&root, &mut nodes, &approval)?;
        Ok(Self {
            flow: read_flow(&root)?,
            digest: source.digest(),
            schema: root.get("schema").map(|it| read_schema(&it, source, Openness::AsWritten)).transpose()?,
            trust_initial: flag(&root, "trust_initial")?,
            protected: read_protected(&root, &approval)?,
            transitions: transitions::read_transitions(&root)?,
            rules: rules::read_rules(&root, &approval)?,
            on_violation: rules::read_on_violation(&root)?,
            mode: read_mode(&root)?,
            tools: tools::read_tools(&root, &approval)?,
            budgets: tools::read_budgets(&root, &approval)?,
            confidence: read_confidence(&root)?,
            encoding: context::read_encoding(&root)?,
            retain: retain::read_retain(&root)?,
            step_attempts: context::read_step_attempts(&root)?,
            hidden,
            detectors,
            reveal_to,
            source: source.clone(),
            nodes,
            approval,
        })
    }
}

/// Reads `[join]`. It has one path, so that each branch has one confidence value.
fn read_confidence(root: &TomlSection<'_>) -> Result<Option<Pointer>, PolicyError> {
    let Some(item) = root.get("join") else { return Ok(None) };
    let section = item.section()?;
    section.expect_keys(JOIN_KEYS)?;
    let Some(item) = section.get("confidence") else { return Ok(None) };
    transitions::read_place(item.text()?)
        .map(Some)
        .map_err(|why| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name())))
}

/// Checks the sizes before anything is parsed. A size has no position in the text, so the error is at its start.
fn check_sizes(source: &PolicySource) -> Result<(), PolicyError> {
    let refuse = |message: String| Err(PolicyError { code: PolicyCode::TooLarge, line: 1, column: 1, message });
    if source.text.len() > bounds::POLICY_BYTES_MAX {
        return refuse(format!("the policy is longer than {} bytes: shorten it", bounds::POLICY_BYTES_MAX));
    }
    if source.schemas.len() > bounds::SCHEMAS_MAX {
        return refuse(format!("more than {} schemas: remove the unused ones", bounds::SCHEMAS_MAX));
    }
    match source.schemas.iter().find(|(_, text)| text.len() > schema::BYTES_MAX) {
        Some((name, _)) => refuse(format!("schema {name:?} is longer than {} bytes", schema::BYTES_MAX)),
        None => Ok(()),
    }
}

/// Reads the mode. By default a flow enforces its policy.
fn read_mode(root: &TomlSection<'_>) -> Result<Mode, PolicyError> {
    let Some(item) = root.get("mode") else { return Ok(Mode::Enforce) };
    match item.text()? {
        "enforce" => Ok(Mode::Enforce),
        "observe" => Ok(Mode::Observe),
        _ => Err(item.error(PolicyCode::BadValue, "`mode` must be \"enforce\" or \"observe\"")),
    }
}

fn read_flow(root: &TomlSection<'_>) -> Result<FlowId, PolicyError> {
    let item = root.require("flow", "the flow's name, such as flow = \"payments\"")?;
    // `all` names every flow in a halt, so it cannot be the name of one flow.
    if item.text()? == "all" {
        return Err(item.error(PolicyCode::BadValue, "`flow`: `all` means every flow; give it another name"));
    }
    FlowId::try_from(item.text()?).map_err(|error| item.error(PolicyCode::BadValue, format!("`flow`: {error}")))
}

fn flag(section: &TomlSection<'_>, key: &str) -> Result<bool, PolicyError> {
    section.get(key).map_or(Ok(false), |item| item.flag())
}

fn read_patterns(section: &TomlSection<'_>, key: &str) -> Result<Patterns, PolicyError> {
    let Some(list) = section.get(key) else { return Ok(Patterns::default()) };
    let mut patterns: Vec<Pattern> = Vec::new();
    for item in list.items(bounds::PATTERNS_MAX)? {
        let text = item.text()?;
        let bad = |why: String| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name()));
        // `Patterns` uses a control character as the key that only `*` matches.
        if text.chars().any(char::is_control) {
            return Err(bad("a pattern must not contain control characters".to_owned()));
        }
        if !unicode_normalization::is_nfc(text) {
            return Err(bad("it is not in Unicode normal form C, so no key can match it: normalize it".to_owned()));
        }
        let pattern = Pattern::try_from(text).map_err(|error| bad(error.to_string()))?;
        if patterns.contains(&pattern) {
            return Err(bad("the list already has this pattern: remove it".to_owned()));
        }
        patterns.push(pattern);
    }
    Ok(patterns.into())
}

fn read_schema(item: &TomlItem<'_>, source: &PolicySource, openness: Openness) -> Result<Schema, PolicyError> {
    let named = match item.value().as_table() {
        Some(table) => SchemaSource::inline(table),
        None => {
            let name = item.text()?;
            let text = source.schemas.get(name).ok_or_else(|| unknown_schema(item, name, source))?;
            SchemaSource::file(name, text)
        }
    };
    named
        .and_then(|it| it.compile(openness))
        .map_err(|error| item.error(PolicyCode::BadSchema, format!("`{}`: {error}", item.name())))
}

fn unknown_schema(item: &TomlItem<'_>, name: &str, source: &PolicySource) -> PolicyError {
    let there: Vec<_> = source.schemas.keys().map(String::as_str).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let message = format!("schema {name:?} is missing: add it. Present: {there}");
    item.error(PolicyCode::UnknownSchema, message)
}

fn read_nodes(root: &TomlSection<'_>, source: &PolicySource) -> Result<BTreeMap<NodeId, NodePolicy>, PolicyError> {
    let Some(nodes) = root.get("nodes") else { return Ok(BTreeMap::new()) };
    let mut read = BTreeMap::new();
    for (name, place, item) in nodes.section()?.members(bounds::NODES_MAX)? {
        let node = NodeId::try_from(name).map_err(|error| place.error(PolicyCode::BadValue, error.to_string()))?;
        read.insert(node, read_node(&item.section()?, source)?);
    }
    Ok(read)
}

fn read_node(section: &TomlSection<'_>, source: &PolicySource) -> Result<NodePolicy, PolicyError> {
    section.expect_keys(NODE_KEYS)?;
    let reads = read_patterns(section, "reads")?;
    Ok(NodePolicy {
        given: context::read_given(section, &reads, source)?,
        reads,
        writes: read_patterns(section, "writes")?,
        deny: read_patterns(section, "deny")?,
        schema: section.get("schema").map(|it| read_schema(&it, source, Openness::Closed)).transpose()?,
        writer: flag(section, "writer")?,
        rollback: flag(section, "rollback")?,
        fork: flag(section, "fork")?,
        tools: tools::read_globs(section, "tools")?,
        budget: None,
    })
}

fn read_protected(root: &TomlSection<'_>, approval: &ApprovalPolicy) -> Result<Patterns, PolicyError> {
    let patterns = read_patterns(root, "protected")?;
    match root.get("protected") {
        Some(item) if !patterns.is_empty() && approval.stages.is_empty() => {
            let message = "`protected` needs reviewers: add [[approval.stages]] with `groups`";
            Err(item.error(PolicyCode::Contradiction, message))
        }
        _ => Ok(patterns),
    }
}

fn read_redaction(root: &TomlSection<'_>) -> Result<(Patterns, Detectors, BTreeSet<GroupName>), PolicyError> {
    let Some(item) = root.get("redaction") else { return Ok(Default::default()) };
    let section = item.section()?;
    section.expect_keys(REDACTION_KEYS)?;
    let reveal_to = section.get("reveal_to").map(|it| read_groups(&it)).transpose()?;
    Ok((read_patterns(&section, "hide")?, read_detectors(&section)?, reveal_to.unwrap_or_default()))
}

fn read_detectors(section: &TomlSection<'_>) -> Result<Detectors, PolicyError> {
    let mut detectors = Detectors::default();
    let mut names = BTreeSet::new();
    if let Some(list) = section.get("detect") {
        for item in list.items(bounds::DETECTORS_MAX)? {
            let name = item.text()?;
            if !names.insert(name) || !detectors.add_built_in(name) {
                let known: Vec<&str> = Detectors::built_in().collect();
                let message = format!("`{}` is one of {}, each once", item.name(), known.join(", "));
                return Err(item.error(PolicyCode::BadValue, message));
            }
        }
    }
    let Some(table) = section.get("patterns") else { return Ok(detectors) };
    for (name, place, item) in table.section()?.members(bounds::DETECTORS_MAX)? {
        let plain =
            !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_');
        if !plain || name.len() > bounds::DETECTOR_NAME_BYTES_MAX || Detectors::built_in().any(|it| it == name) {
            let message = "a pattern's name is made of a to z, 0 to 9 and _, and is not one of `detect`";
            return Err(place.error(PolicyCode::BadValue, message.to_owned()));
        }
        let added = detectors.add(name, item.text()?);
        added.map_err(|why| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name())))?;
    }
    Ok(detectors)
}

fn read_approval(root: &TomlSection<'_>, has_writer: bool) -> Result<ApprovalPolicy, PolicyError> {
    let default = ApprovalPolicy {
        covers: if has_writer { ApprovalScope::Write } else { ApprovalScope::Commit },
        ttl: bounds::TTL_DEFAULT,
        receipt_ttl: bounds::RECEIPT_TTL_DEFAULT,
        write_lease: bounds::WRITE_LEASE_DEFAULT,
        attempts: bounds::ATTEMPTS_DEFAULT,
        attempts_within: bounds::ATTEMPTS_WITHIN_DEFAULT,
        denials: bounds::DENIALS_DEFAULT,
        stages: Vec::new(),
        remind_after: None,
        escalation: None,
        amending: None,
    };
    let Some(item) = root.get("approval") else { return Ok(default) };
    let section = item.section()?;
    section.expect_keys(APPROVAL_KEYS)?;
    let duration =
        |key: &str, range, default: Duration| section.get(key).map_or(Ok(default), |item| item.duration(range));
    let count = |key: &str, range, default: u32| section.get(key).map_or(Ok(default), |item| item.count(range));
    let ttl = duration("ttl", bounds::TTL, default.ttl)?;
    Ok(ApprovalPolicy {
        covers: read_covers(&section)?.unwrap_or(default.covers),
        ttl,
        receipt_ttl: duration("receipt_ttl", bounds::RECEIPT_TTL, default.receipt_ttl)?,
        write_lease: duration("write_lease", bounds::WRITE_LEASE, default.write_lease)?,
        attempts: count("attempts", bounds::ATTEMPTS, default.attempts)?,
        attempts_within: duration("attempts_within", bounds::ATTEMPTS_WITHIN, default.attempts_within)?,
        denials: count("denials", bounds::DENIALS, default.denials)?,
        stages: read_stages(&section)?,
        remind_after: section.get("remind_after").map(|it| escalation::read_within(&it, ttl)).transpose()?,
        escalation: escalation::read_escalation(&section, ttl)?,
        amending: section.get("policy").map(|it| read_amending(&it.section()?)).transpose()?,
    })
}

fn read_covers(section: &TomlSection<'_>) -> Result<Option<ApprovalScope>, PolicyError> {
    let Some(item) = section.get("covers") else { return Ok(None) };
    match item.text()? {
        "write" => Ok(Some(ApprovalScope::Write)),
        "commit" => Ok(Some(ApprovalScope::Commit)),
        _ => Err(item.error(PolicyCode::BadValue, "`approval.covers` must be \"write\" or \"commit\"")),
    }
}

fn read_stages(section: &TomlSection<'_>) -> Result<Vec<PolicyStage>, PolicyError> {
    let Some(list) = section.get("stages") else { return Ok(Vec::new()) };
    let read = |section: TomlSection<'_>| {
        section.expect_keys(STAGE_KEYS)?;
        read_stage(&section)
    };
    list.items(bounds::STAGES_MAX)?.iter().map(|item| read(item.section()?)).collect()
}

fn read_amending(section: &TomlSection<'_>) -> Result<PolicyChangeApproval, PolicyError> {
    section.expect_keys(AMENDING_KEYS)?;
    let ttl = section.get("ttl").map_or(Ok(bounds::TTL_DEFAULT), |item| item.duration(bounds::TTL))?;
    Ok(PolicyChangeApproval { stage: read_stage(section)?, ttl })
}

fn read_stage(section: &TomlSection<'_>) -> Result<PolicyStage, PolicyError> {
    let list = section.require("groups", "the groups whose members may vote, such as groups = [\"finance\"]")?;
    let groups = read_groups(&list)?;
    if groups.is_empty() {
        return Err(list.error(PolicyCode::BadValue, "a stage needs at least one group, because its members vote"));
    }
    let need = section.get("need").map_or(Ok(1), |item| item.count(bounds::NEED))?;
    let (comment, confirm) = (read_comment(section)?, read_confirm(section)?);
    Ok(PolicyStage { groups, need, comment, passkey: read_passkey(section)?, confirm })
}

fn read_groups(list: &TomlItem<'_>) -> Result<BTreeSet<GroupName>, PolicyError> {
    let mut groups = BTreeSet::new();
    for item in list.items(bounds::GROUPS_MAX)? {
        let bad = |why: String| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name()));
        let group = GroupName::try_from(item.text()?).map_err(|error| bad(error.to_string()))?;
        if !groups.insert(group) {
            return Err(bad("the list already has this group: remove it".to_owned()));
        }
    }
    Ok(groups)
}

/// Reads the passkey requirement. A signature over a vote is always fresh, so `passkey_within` would add nothing to it.
fn read_passkey(section: &TomlSection<'_>) -> Result<PasskeyRule, PolicyError> {
    let signs = flag(section, "passkey")?;
    match (signs, section.get("passkey_within")) {
        (true, Some(item)) => {
            let message = "`passkey = true` already requires a fresh signature for each vote: remove `passkey_within`";
            Err(item.error(PolicyCode::BadValue, message))
        }
        (true, None) => Ok(PasskeyRule::Signs),
        (false, Some(item)) => Ok(PasskeyRule::Within(item.duration(bounds::PASSKEY_WITHIN)?)),
        (false, None) => Ok(PasskeyRule::Optional),
    }
}

fn read_confirm(section: &TomlSection<'_>) -> Result<ConfirmationRule, PolicyError> {
    let Some(item) = section.get("confirm") else { return Ok(ConfirmationRule::Pressed) };
    match item.text()? {
        "pressed" => Ok(ConfirmationRule::Pressed),
        "typed" => Ok(ConfirmationRule::Typed),
        _ => Err(item.error(PolicyCode::BadValue, "`confirm` must be \"pressed\" or \"typed\"")),
    }
}

fn read_comment(section: &TomlSection<'_>) -> Result<CommentRule, PolicyError> {
    let Some(item) = section.get("comment") else { return Ok(CommentRule::Optional) };
    match item.text()? {
        "optional" => Ok(CommentRule::Optional),
        "required" => Ok(CommentRule::Required),
        _ => Err(item.error(PolicyCode::BadValue, "`comment` must be \"optional\" or \"required\"")),
    }
}

#[cfg(test)]
mod tests;
