//! `doctor`: checks a gateway's set-up, and prints each problem with its remedy.

mod host;
#[cfg(test)]
mod tests;

use countersign_domain::operations::finding::{FindingCode, FindingSeverity, SetupFinding};
use countersign_domain::operations::flow_findings::flow_findings;
use countersign_domain::policy::Policy;
use countersign_service::Service;
use countersign_service::error::Result;
use serde_json::json;

use crate::cli::output::CommandOutput;
use crate::cli::{CliError, CommandExit, health, open_service};
use crate::config::Config;

/// Exits with 0 if there is no problem, and with 1 otherwise. Warnings alone are no problem.
pub fn run(config: &Config, out: &mut CommandOutput<'_>) -> std::result::Result<CommandExit, CliError> {
    let mut findings = open_service::with_service(config, |service| async move {
        let mut findings = findings_of(&service).await?;
        findings.extend(host::findings(config, &service).await?);
        Ok(findings)
    })?;
    findings.extend(health::problem(config).map(|problem| {
        let address = config.listen;
        SetupFinding::warning(
            FindingCode::NotServing,
            format!("No gateway responds at {address}: {problem}."),
            "Start it: countersign serve".to_owned(),
        )
    }));
    findings.sort_by_key(|it| (it.severity, it.code));
    let line =
        |it: &SetupFinding| format!("{}: {}\n  {} [{}]", it.severity.as_str(), it.detail, it.remedy, it.code.as_str());
    let lines: Vec<String> = findings.iter().map(line).collect();
    let text = if lines.is_empty() { "no findings".to_owned() } else { lines.join("\n") };
    out.answer(text, || json!({"findings": findings}))?;
    let sound = findings.iter().all(|it| it.severity == FindingSeverity::Warning);
    Ok(if sound { CommandExit::Yes } else { CommandExit::No })
}

async fn findings_of(service: &Service) -> Result<Vec<SetupFinding>> {
    let mut findings = Vec::new();
    if let Some(behind) = service.log.clock_behind().await? {
        findings.push(SetupFinding::problem(
            FindingCode::ClockBehind,
            format!("{behind}."),
            "Set the clock. If it was ahead before and is correct now, start once: countersign serve --clock-was-ahead"
                .to_owned(),
        ));
    }
    if let Err(error) = service.operations.ready_to_work().await {
        findings.push(SetupFinding::problem(
            FindingCode::NotReady,
            format!("The gateway cannot commit: {error}."),
            "Check the disk, the rights of the data directory and the database, then run countersign doctor again."
                .to_owned(),
        ));
    }
    if let Err(error) = service.log.check_newest_entry().await {
        findings.push(SetupFinding::problem(
            FindingCode::EntryDoesNotVerify,
            format!("The newest entry does not verify with this keyring: {error}."),
            "Restore the newest keyring. If it is the newest one, run countersign audit.".to_owned(),
        ));
    }
    let facts = service.policy_changes.access_facts().await?;
    let flows = service.policies.flows().await?;
    for flow in &flows {
        let policy = service.policies.active_policy(flow).await?;
        findings.extend(flow_findings(&policy, &facts));
        // A policy of an earlier release may contain a path that is refused today.
        if let Err(error) = Policy::compile_submitted(policy.source()) {
            findings.push(SetupFinding::problem(
                FindingCode::PolicyMistake,
                format!("The active policy of the flow {flow} would be refused today: {error} [{}].", error.code),
                "Correct it, then: countersign policy activate FILE".to_owned(),
            ));
        }
    }
    if flows.is_empty() {
        findings.push(SetupFinding::warning(
            FindingCode::FlowWithoutPolicy,
            "There is no flow yet.".to_owned(),
            "Create one: countersign init".to_owned(),
        ));
    }
    Ok(findings)
}
