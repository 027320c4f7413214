-- A person's sessions that are not over, however many there were.
CREATE INDEX sessions_owner_due ON sessions (owner, due, id) WHERE owner <> '';
