//! Maps errors of PostgreSQL and of connections to store errors.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use super::super::StoreError;
use super::super::outage::Outage;

/// Returns the error for a caller without preconditions.
pub(super) fn database(error: &Error) -> StoreError {
    if error.code().is_some_and(is_overload) {
        return StoreError::Busy;
    }
    let said = format!("PostgreSQL: {}", told(error));
    match outage_of(error) {
        Some(outage) => StoreError::unavailable(outage, said),
        None => StoreError::Database(said),
    }
}

/// Returns the error for the single change that met the failure.
pub(super) fn of_change(error: &Error, table: &'static str) -> StoreError {
    let met = [SqlState::UNIQUE_VIOLATION, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    match error.code() {
        Some(code) if met.contains(code) => StoreError::Conflict(table),
        _ => database(error),
    }
}

/// Returns the outage that an error means. Any other error is a mistake in this program's statements.
pub(super) fn outage_of(error: &Error) -> Option<Outage> {
    match error.code() {
        Some(code) => of_state(code.code()),
        None => is_of_connection(error).then_some(Outage::Down),
    }
}

/// Returns the outage that a SQLSTATE reports.
fn of_state(code: &str) -> Option<Outage> {
    /// SQLSTATE classes of failed connections, refused sign-ins, missing databases, exhausted resources, and servers
    /// that start or stop. `25P03` is a transaction that the server ended because this process stalled.
    const DOWN: [&str; 6] = ["08", "28", "3D", "53", "57P", "25P03"];
    match code {
        "25006" => Some(Outage::ReadOnly),
        "53100" => Some(Outage::Full),
        "58030" => Some(Outage::Disk),
        "XX001" | "XX002" => Some(Outage::Damaged),
        _ => DOWN.iter().any(|class| code.starts_with(class)).then_some(Outage::Down),
    }
}

/// Checks that the error occurred in the connection. The texts are compared because the library does not export its
/// kinds of errors.
fn is_of_connection(error: &Error) -> bool {
    const KINDS: [&str; 7] = [
        "error communicating with the server",
        "connection closed",
        "error performing TLS handshake",
        "error connecting to server",
        "timeout waiting for server",
        "authentication error",
        "unexpected message from server",
    ];
    error.is_closed() || KINDS.contains(&error.to_string().as_str())
}

/// Checks that a lock was not available or that the server was too slow.
fn is_overload(code: &SqlState) -> bool {
    [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code)
}

/// Returns the error's message if it cannot contain values of rows. Otherwise returns only its code.
fn told(error: &Error) -> String {
    let text = said(error);
    match text.starts_with("error performing TLS handshake") {
        false => text,
        true => format!(
            "{text}. The server's certificate must be for the name in its address, and signed by a trusted CA of this host \
             or by the one in `database_ca_file`. On a trusted network you can use sslmode=disable"
        ),
    }
}

fn said(error: &Error) -> String {
    match error.as_db_error() {
        Some(refusal) if names_only(refusal) => format!("{} ({})", refusal.message(), refusal.code().code()),
        // Messages of other classes may quote values of rows.
        Some(refusal) => format!("error {}", refusal.code().code()),
        None => {
            let causes = std::iter::successors(error.source(), |cause| (*cause).source());
            causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
        }
    }
}

/// Checks that the connection failed and not the statement. Another connection may work.
pub(super) fn is_lost(error: &Error) -> bool {
    match error.code() {
        Some(code) => ["08", "57P"].iter().any(|class| code.code().starts_with(class)),
        None => true,
    }
}

/// Checks for error classes about connections, permissions, names and resources. Their messages contain no values.
fn names_only(refusal: &DbError) -> bool {
    const CLASSES: [&str; 9] = ["08", "25", "28", "3D", "42", "53", "55", "57", "58"];
    CLASSES.iter().any(|class| refusal.code().code().starts_with(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstate_distinguishes_outages_from_mistakes() {
        let down = ["08006", "28P01", "3D000", "53200", "53300", "57P01", "57P02", "57P03", "25P03"];
        for code in down {
            assert_eq!(of_state(code), Some(Outage::Down), "{code}");
        }
        let others = [("25006", Outage::ReadOnly), ("53100", Outage::Full), ("58030", Outage::Disk)];
        for (code, outage) in others.into_iter().chain([("XX001", Outage::Damaged), ("XX002", Outage::Damaged)]) {
            assert_eq!(of_state(code), Some(outage), "{code}");
        }
        for code in ["23505", "25P02", "42P01", "22001", "XX000", "40001"] {
            assert_eq!(of_state(code), None, "{code}");
        }
    }
}
