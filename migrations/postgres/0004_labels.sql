-- What people find a row by besides its names: one line for each label of each row, in the order of lists.
-- Only rows that are searched bear any. The change that writes a row puts and removes its labels. They bear no seal:
-- a row that is found is opened by its own and must bear the label, and an audit looks that none is missing.
CREATE TABLE labels (
    kept_in TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C" NOT NULL,
    due BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (kept_in, label, due, id)
);

-- Where nothing was kept before there were labels, all that is kept bears its own. Elsewhere the gateway sees to it when
-- it starts, and says so here.
INSERT INTO labels (kept_in, label, due, id)
SELECT 'labels', 'edition', 1, 'holds' WHERE NOT EXISTS (SELECT 1 FROM holds);
