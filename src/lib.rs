//! Countersign: the second signature that makes an order valid.

pub mod web;
