//! Reads `[[rules]]` and the instructions for agents whose request is rejected.

use std::collections::BTreeSet;

use super::super::bounds;
use super::super::error::{PolicyCode, PolicyError};
use super::super::model::{ApprovalPolicy, OnViolation};
use super::super::rules::{PolicyRule, RuleAction};
use super::super::toml_reader::{TomlItem, TomlSection};
use super::reviewers::need_people;
use super::tools::read_globs;

pub(super) const RULE_KEYS: &[&str] = &["name", "tools", "when", "then", "reason"];

pub(super) fn read_rules(root: &TomlSection<'_>, approval: &ApprovalPolicy) -> Result<Vec<PolicyRule>, PolicyError> {
    let Some(list) = root.get("rules") else { return Ok(Vec::new()) };
    let (mut rules, mut names) = (Vec::new(), BTreeSet::new());
    for item in list.items(bounds::RULES_MAX)? {
        let rule = read_rule(&item, approval)?;
        // Errors, warnings and test cases identify a rule by its name.
        if !names.insert(rule.name.clone()) {
            let message = format!("`{}`: another rule is called {:?} already", item.name(), rule.name);
            return Err(item.error(PolicyCode::BadValue, message));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn read_rule(item: &TomlItem<'_>, approval: &ApprovalPolicy) -> Result<PolicyRule, PolicyError> {
    let section = item.section()?;
    section.expect_keys(RULE_KEYS)?;
    let when = section.require("when", "the condition in CEL, such as when = \"change.path == '/payment/amount'\"")?;
    let then = read_then(&section, approval)?;
    let reason = section.require("reason", "why, in words for agents and reviewers")?;
    let reason = reason.line(bounds::RULE_REASON_CHARS_MAX)?;
    let name = match section.get("name") {
        Some(name) => name.line(bounds::RULE_NAME_CHARS_MAX)?,
        // Every rule needs a name in errors and warnings, so its position is the default.
        None => item.name().to_owned(),
    };
    let tools = read_globs(&section, "tools")?;
    // The condition is compiled with the policy, so that no request can meet an unknown name.
    PolicyRule::new(name, when.text()?, then, reason, tools).map_err(|why| {
        let message = format!("`{}`: {why}", when.name());
        when.error(PolicyCode::BadRule, message)
    })
}

fn read_then(section: &TomlSection<'_>, approval: &ApprovalPolicy) -> Result<RuleAction, PolicyError> {
    let item = section.require("then", "what follows: then = \"hold\", \"deny\" or \"warn\"")?;
    match item.text()? {
        "deny" => Ok(RuleAction::Deny),
        "hold" => need_people(&item, approval).map(|()| RuleAction::Hold),
        "warn" => Ok(RuleAction::Warn),
        _ => {
            let message = format!("`{}` must be \"hold\", \"deny\" or \"warn\"", item.name());
            Err(item.error(PolicyCode::BadValue, message))
        }
    }
}

pub(super) fn read_on_violation(root: &TomlSection<'_>) -> Result<OnViolation, PolicyError> {
    let Some(item) = root.get("on_violation") else { return Ok(OnViolation::FailFast) };
    match item.text()? {
        "fail_fast" => Ok(OnViolation::FailFast),
        "retry_once" => Ok(OnViolation::RetryOnce),
        "skip_node" => Ok(OnViolation::SkipNode),
        _ => {
            let message = "`on_violation` must be \"fail_fast\", \"retry_once\" or \"skip_node\"";
            Err(item.error(PolicyCode::BadValue, message))
        }
    }
}
