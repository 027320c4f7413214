//! Who may call what: every route of the gateway's table with every role, against the table of the specification,
//! written down here once more.
