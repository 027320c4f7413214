//! PostgreSQL: many gateways on one database.
