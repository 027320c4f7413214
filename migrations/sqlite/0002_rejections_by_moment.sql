-- Rejected attempts are looked through the latest first.
CREATE INDEX rejections_due ON rejections (due, id);
