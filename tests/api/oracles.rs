//! Nothing an agent sends can read what it may not.
