//! The page of the metrics, from the registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use countersign_adapters::metrics::Metrics;

use super::{row, sentence};

const INTRODUCTION: &str = "\
# Metrics

`GET /metrics` returns the metrics of one gateway in the Prometheus text format. This page lists every metric.
[Operate](../guides/operate.md#monitor) shows the scrape configuration and the alerts.
";

const NOTES: &str = "\
## Notes

**Database gauges.** Some gauges describe the database, and every gateway reports the same values:
`countersign_open_*`, `countersign_reservations`, `countersign_halted`, `countersign_unplaced_*`, `countersign_log_events`,
`countersign_uncounted_events`, `countersign_database_bytes`, `countersign_archive*` and `countersign_endpoint_*`. With several
gateways, take the maximum. The gateway reads them at most every two seconds and counts at most 10,000 rows of a kind. If that read
fails, `countersign_store_readable` is 0 and the gauges are missing.

**Counters of the process.** All other metrics count the work of one gateway since its start. With several gateways, add them up.
Each event is counted by one gateway.

**Flows.** A gateway names the first 200 flows that it meets. It counts all others together, with an empty `flow` label.

| Metric | Note |
|---|---|
| `countersign_archives`, `countersign_archive_bytes` | Files with versions that were [moved out of the database](../guides/backup.md#archives). |
| `countersign_boundary_refusals_total` | The codes are those of [envelopes](../specs/protocol.md#envelopes), and `budget`. Every refusal is counted. The event `envelope.refused` is written once per hour for the same refusal. |
| `countersign_chain_failures_total` | If it rises, run [`countersign audit`](../guides/audit.md). |
| `countersign_clock_behind_seconds` | Above 0 if the clock is more than four seconds behind. Deadlines pass too late until the clock is set. |
| `countersign_database_bytes` | The SQLite file including free pages, or the size that PostgreSQL reports. |
| `countersign_endpoint_disabled` | Nothing is sent to the endpoint until a person enables it. |
| `countersign_endpoint_failing_seconds` | 0 if the last delivery arrived. |
| `countersign_delivery_attempts_total` | The outcome is the class of the response (`2xx`), or the reason why there is none. `looked`: the status request found that nothing waits any more. `over`: there was nothing left to send. |
| `countersign_queued_work_total` | `judgement`: a large proposal, a writer's result, or the first state of a thread. `dry_run`: a what-if. `policy`: a policy was compiled. `import`: an import of a run. `state`: a large state of an earlier version. `trace`: a step on the way back to the author of a leaf that equals a redacted value. `redaction`: a large state for one reader, or a rejected request on a large state. |
| `countersign_request_seconds` | Measures until the response begins. Waiting for a decision (long polling) is included. |
| `countersign_worker_failing` | 1 for a worker whose last run failed, else 0. The server log has the cause. |

## Label values

| Label | Values |
|---|---|
| `decision` | `approved`, `denied` |
| `ending` | `approved`, `denied`, `expired`, `cancelled`, `superseded` |
| `endpoint` | The id of the endpoint. |
| `lease` | `standing` (the lease is active), `lapsed` (the lease expired and the outcome is unknown) |
| `method` | The HTTP method, or `other`. |
| `outcome` of `countersign_proposals_total` | `committed`, `observed`, `held`, `rejected` |
| `route` | The route, not the path: `/v1/threads/{thread}`. |
| `status` | The class of the status: `2xx`, `4xx`, … |
| `type` | The type of the event, like `transition.held`. |
| `what` | `proposing`, `verifying` |
| `worker` | The name of the background worker. `export_log` is the log export and `mail` sends email notifications. For one release, each renamed worker is also listed under its former name, such as `letters`. |

The gateway reports these values with 0 from its start:
";

pub fn page() -> String {
    let metrics = Metrics::default();
    let mut page = format!("{INTRODUCTION}\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for family in metrics.described() {
        let labels = family.labels.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
        let (name, help) = (format!("`{}`", family.name), sentence(&family.help));
        page.push_str(&row([name.as_str(), family.kind.as_str(), labels.as_str(), help.as_str()]));
    }
    write!(page, "\n{NOTES}\n| Metric | Label | Values |\n|---|---|---|\n").unwrap();
    for ((name, label), values) in known_values(&metrics.text(None, 0)) {
        let (name, label, values) = (format!("`{name}`"), format!("`{label}`"), values.join(", "));
        page.push_str(&row([name.as_str(), label.as_str(), values.as_str()]));
    }
    page
}

/// The values of labels that are there before anything happens, by metric and label.
fn known_values(text: &str) -> BTreeMap<(String, String), Vec<String>> {
    let mut known: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in text.lines().filter(|it| !it.starts_with('#') && !it.starts_with("countersign_build_info")) {
        let Some((name, rest)) = line.split_once('{') else { continue };
        let (label, value) = rest.split_once("=\"").unwrap();
        let value = value.split('"').next().unwrap();
        known.entry((name.to_owned(), label.to_owned())).or_default().push(format!("`{value}`"));
    }
    known
}
