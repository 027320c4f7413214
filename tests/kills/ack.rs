//! The acknowledgements of the gateway, which go through a pipe: one line each, in one write.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ack", rename_all = "snake_case")]
pub enum KillAcknowledgement {
    Made {
        thread: String,
        transition: String,
    },
    Committed {
        thread: String,
        version: u64,
        transition: String,
    },
    Rejected {
        thread: String,
    },
    Held {
        thread: String,
        review: String,
        transition: String,
    },
    Voted {
        review: String,
        reviewer: String,
    },
    Approved {
        review: String,
        transition: String,
    },
    Denied {
        review: String,
    },
    Cancelled {
        review: String,
    },
    Receipt {
        transition: String,
        receipt: String,
    },
    Reserved {
        write: String,
        fence: u64,
        transition: String,
    },
    Confirmed {
        write: String,
        version: u64,
        transition: String,
    },
    Aborted {
        write: String,
    },
    /// A commit has reached the point at which the parent kills it, and waits there.
    AtPoint,
    /// Something else went wrong: no acknowledgement, but worth reading when a run fails.
    Trouble {
        text: String,
    },
}
