//! Reads `[tools]` and `[budgets]`: the tools that agents may call, how reviewers see them, and the amounts that agents may use.

use std::collections::BTreeMap;

use super::super::bounds;
use super::super::budget::{Budget, Budgets, OnBreach};
use super::super::error::{PolicyCode, PolicyError};
use super::super::model::{ApprovalPolicy, NodePolicy};
use super::super::toml_reader::{TomlItem, TomlSection};
use super::read_patterns;
use super::reviewers::need_people;
use crate::policy::tool_description::{ToolDescription, ToolRisk};
use crate::policy::tool_globs::{ChangedTools, ToolGlob, ToolGlobs, ToolPolicy};
use crate::primitives::id::{NodeId, ToolName};
use crate::primitives::sanitize;
use crate::primitives::sanitize::TextSegment;
use crate::threads::usage::Cost;

pub(in crate::policy) const TOOLS_KEYS: &[&str] = &["allow", "deny", "hide", "changed"];
pub(super) const DESCRIPTION_KEYS: &[&str] = &["title", "description", "risk", "show", "label", "unit"];
pub(super) const BUDGETS_KEYS: &[&str] = &["call", "node", "thread"];
pub(super) const BUDGET_KEYS: &[&str] = &["calls", "tokens", "cost", "context_tokens", "then"];
/// One request calls at most one tool, and `max_tokens` of its node limits its context.
const CALL_KEYS: &[&str] = &["tokens", "cost", "then"];

pub(super) fn read_tools(root: &TomlSection<'_>, approval: &ApprovalPolicy) -> Result<ToolPolicy, PolicyError> {
    let Some(item) = root.get("tools") else { return Ok(ToolPolicy::default()) };
    let section = item.section()?;
    Ok(ToolPolicy {
        described: read_described(&section)?,
        // A missing list leaves the decision to the nodes, and an empty list allows no tool.
        allow: read_globs(&section, "allow")?,
        deny: read_globs(&section, "deny")?.unwrap_or_default(),
        changed: section.get("changed").map(|it| read_changed(&it, approval)).transpose()?.unwrap_or_default(),
        hidden: read_patterns(&section, "hide")?,
    })
}

fn read_changed(item: &TomlItem<'_>, approval: &ApprovalPolicy) -> Result<ChangedTools, PolicyError> {
    match ChangedTools::ALL.into_iter().find(|it| item.value().as_str() == Some(it.as_str())) {
        Some(ChangedTools::Hold) => need_people(item, approval).map(|()| ChangedTools::Hold),
        Some(ChangedTools::Refuse) => Ok(ChangedTools::Refuse),
        None => Err(item.error(PolicyCode::BadValue, format!("`{}` must be \"refuse\" or \"hold\"", item.name()))),
    }
}

/// Reads the tables of `[tools]`. Each describes the tool of that name.
fn read_described(tools: &TomlSection<'_>) -> Result<BTreeMap<ToolName, ToolDescription>, PolicyError> {
    let mut described = BTreeMap::new();
    for (name, place, item) in tools.members(TOOLS_KEYS.len() + bounds::TOOLS_DESCRIBED_MAX)? {
        if TOOLS_KEYS.contains(&name) {
            continue;
        }
        // A misspelled `allow` is a list, and a table must be meant as the description of a tool.
        let Ok(section) = item.section() else {
            let message = format!(
                "unknown key `{}`: take it out; known here are {}, and a table for each tool that you describe",
                item.name(),
                TOOLS_KEYS.join(", ")
            );
            return Err(place.error(PolicyCode::UnknownKey, message));
        };
        let tool = ToolName::try_from(name).map_err(|error| place.error(PolicyCode::BadValue, error.to_string()))?;
        described.insert(tool, read_description(&section)?);
    }
    Ok(described)
}

fn read_description(section: &TomlSection<'_>) -> Result<ToolDescription, PolicyError> {
    section.expect_keys(DESCRIPTION_KEYS)?;
    let text = |key, max| section.get(key).map(|it| read_words(&it, max)).transpose();
    Ok(ToolDescription {
        title: text("title", bounds::TOOL_LABEL_CHARS_MAX)?,
        description: text("description", bounds::TOOL_DESCRIPTION_CHARS_MAX)?,
        risk: section.get("risk").map(|it| read_risk(&it)).transpose()?,
        show: read_shown(section)?,
        labels: read_argument_words(section, "label")?,
        units: read_argument_words(section, "unit")?,
    })
}

/// Reads words for reviewers. They also stand in messages, which cannot mark an invisible character.
fn read_words(item: &TomlItem<'_>, max: usize) -> Result<String, PolicyError> {
    let text = item.line(max)?;
    if sanitize::inert_line(&text).iter().any(|it| matches!(it, TextSegment::Escape(_))) {
        let message = format!("`{}` has a character that is invisible or reorders text: remove it", item.name());
        return Err(item.error(PolicyCode::BadValue, message));
    }
    Ok(text)
}

fn read_risk(item: &TomlItem<'_>) -> Result<ToolRisk, PolicyError> {
    let risk = ToolRisk::ALL.into_iter().find(|it| item.value().as_str() == Some(it.as_str()));
    risk.ok_or_else(|| {
        item.error(PolicyCode::BadValue, format!("`{}` must be \"low\", \"medium\" or \"high\"", item.name()))
    })
}

/// Reads the names of the arguments that are shown first.
fn read_shown(section: &TomlSection<'_>) -> Result<Vec<String>, PolicyError> {
    let Some(list) = section.get("show") else { return Ok(Vec::new()) };
    let mut shown: Vec<String> = Vec::new();
    for item in list.items(bounds::TOOL_ARGUMENTS_MAX)? {
        let argument = read_words(&item, bounds::TOOL_LABEL_CHARS_MAX)?;
        if shown.contains(&argument) {
            let message = format!("`{}`: the list already has {argument}: remove it", item.name());
            return Err(item.error(PolicyCode::BadValue, message));
        }
        shown.push(argument);
    }
    Ok(shown)
}

/// Reads a table from the names of arguments to words for reviewers.
fn read_argument_words(section: &TomlSection<'_>, key: &str) -> Result<BTreeMap<String, String>, PolicyError> {
    let Some(item) = section.get(key) else { return Ok(BTreeMap::new()) };
    let named = item.section()?.members(bounds::TOOL_ARGUMENTS_MAX)?;
    named
        .into_iter()
        .map(|(argument, _, it)| Ok((argument.to_owned(), read_words(&it, bounds::TOOL_LABEL_CHARS_MAX)?)))
        .collect()
}

/// Reads a list of globs. A missing key is not the same as an empty list.
pub(super) fn read_globs(section: &TomlSection<'_>, key: &str) -> Result<Option<ToolGlobs>, PolicyError> {
    let Some(list) = section.get(key) else { return Ok(None) };
    let mut globs: Vec<ToolGlob> = Vec::new();
    for item in list.items(bounds::TOOLS_MAX)? {
        let bad = |why: String| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name()));
        let glob = ToolGlob::new(item.text()?).map_err(bad)?;
        // A repeated glob has no effect, so the author probably meant another one.
        if globs.contains(&glob) {
            return Err(bad(format!("the list already has {glob}: remove it")));
        }
        globs.push(glob);
    }
    Ok(Some(globs.into()))
}

pub(super) fn read_budgets(root: &TomlSection<'_>, approval: &ApprovalPolicy) -> Result<Budgets, PolicyError> {
    let Some(item) = root.get("budgets") else { return Ok(Budgets::default()) };
    let section = item.section()?;
    section.expect_keys(BUDGETS_KEYS)?;
    Ok(Budgets {
        call: read_budget(&section, "call", CALL_KEYS, approval)?,
        node: read_budget(&section, "node", BUDGET_KEYS, approval)?,
        thread: read_budget(&section, "thread", BUDGET_KEYS, approval)?,
    })
}

/// Reads the budgets of the nodes, after it is known whether the policy has approval stages.
pub(super) fn read_node_budgets(
    root: &TomlSection<'_>,
    read: &mut BTreeMap<NodeId, NodePolicy>,
    approval: &ApprovalPolicy,
) -> Result<(), PolicyError> {
    let Some(nodes) = root.get("nodes") else { return Ok(()) };
    for (name, _, item) in nodes.section()?.members(bounds::NODES_MAX)? {
        let budget = read_budget(&item.section()?, "budget", BUDGET_KEYS, approval)?;
        // `read_nodes` has rejected invalid names, so every node is found.
        if let Some(node) = NodeId::try_from(name).ok().and_then(|it| read.get_mut(&it)) {
            node.budget = budget;
        }
    }
    Ok(())
}

fn read_budget(
    section: &TomlSection<'_>,
    key: &str,
    keys: &[&str],
    approval: &ApprovalPolicy,
) -> Result<Option<Budget>, PolicyError> {
    let Some(item) = section.get(key) else { return Ok(None) };
    let section = item.section()?;
    section.expect_keys(keys)?;
    let whole = |key: &str| section.get(key).map(|it| it.whole(bounds::BUDGET_MAX)).transpose();
    let budget = Budget {
        calls: whole("calls")?,
        tokens: whole("tokens")?,
        cost: section.get("cost").map(|it| read_cost(&it)).transpose()?,
        context_tokens: whole("context_tokens")?,
        then: match section.get("then") {
            Some(item) => read_on_breach(&item, approval)?,
            // A rejection needs no approval stages, so it is the default.
            None => OnBreach::Deny,
        },
    };
    // A table without a limit would look like a budget and restrict nothing.
    let counts = [budget.calls, budget.tokens, budget.context_tokens];
    if counts.iter().all(Option::is_none) && budget.cost.is_none() {
        let message = format!("`{}` bounds nothing: add one of {}", item.name(), keys[..keys.len() - 1].join(", "));
        return Err(item.error(PolicyCode::Missing, message));
    }
    Ok(Some(budget))
}

fn read_on_breach(item: &TomlItem<'_>, approval: &ApprovalPolicy) -> Result<OnBreach, PolicyError> {
    match item.text()? {
        "deny" => Ok(OnBreach::Deny),
        "hold" => need_people(item, approval).map(|()| OnBreach::Hold),
        _ => Err(item.error(PolicyCode::BadValue, format!("`{}` must be \"hold\" or \"deny\"", item.name()))),
    }
}

fn read_cost(item: &TomlItem<'_>) -> Result<Cost, PolicyError> {
    // The text of the number is parsed, because a double would not represent every decimal exactly.
    Cost::parse(item.number()?).ok_or_else(|| {
        let message = format!("`{}` must be a number below 1000000000 with at most six decimals", item.name());
        item.error(PolicyCode::BadValue, message)
    })
}
