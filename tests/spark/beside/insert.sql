-- columns by name
INSERT INTO {t} (n, id) SELECT n, id FROM s
= SELECT * FROM t UNION ALL SELECT id, NULL, n, NULL, NULL, NULL FROM s

-- columns by the names of the query
INSERT INTO {t} BY NAME SELECT n, dep, id FROM s
= SELECT * FROM t UNION ALL SELECT id, dep, n, NULL, NULL, NULL FROM s

-- columns by place, with casts
INSERT INTO {t} SELECT id + 10L, id, n, current_timestamp(), NULL, array(n, NULL) FROM s WHERE id = 1
= SELECT * FROM t UNION ALL SELECT 11, '1', 100, current_date(), NULL, array(100, NULL)

-- written down, with words for what is missing
INSERT INTO {t} VALUES (8, DEFAULT, NULL, date'2024-01-08', named_struct('x', 1, 'y', NULL), array())
= SELECT * FROM t UNION ALL SELECT 8, NULL, NULL, date'2024-01-08', named_struct('x', 1, 'y', NULL), array()

-- from a table
INSERT INTO {t} TABLE t
= SELECT * FROM t UNION ALL SELECT * FROM t

-- the query first
FROM t INSERT INTO {t} SELECT * WHERE id < 3
= SELECT * FROM t UNION ALL SELECT * FROM t WHERE id < 3

-- a named query first
WITH w AS (SELECT * FROM t WHERE id = 5) INSERT INTO {t} SELECT * FROM w
= SELECT * FROM t UNION ALL SELECT * FROM t WHERE id = 5

-- the table into itself
INSERT INTO {t} SELECT * FROM {t}
= SELECT * FROM t UNION ALL SELECT * FROM t

-- in the place of everything
INSERT OVERWRITE {t} (id, n) SELECT id, n FROM s
= SELECT id, NULL, n, NULL, NULL, NULL FROM s

-- nothing in the place of everything
INSERT OVERWRITE {t} SELECT * FROM t WHERE false
= SELECT * FROM t WHERE false

-- in the place of rows that a condition names
INSERT INTO {t} REPLACE WHERE dep = 'hr' SELECT id, 'hr', n, NULL, NULL, NULL FROM s WHERE id < 3
= SELECT * FROM t WHERE NOT dep <=> 'hr' UNION ALL SELECT id, 'hr', n, NULL, NULL, NULL FROM s WHERE id < 3

-- nulls of an empty kind
INSERT INTO {t} SELECT 9, NULL, NULL, NULL, NULL, NULL
= SELECT * FROM t UNION ALL SELECT 9, NULL, NULL, NULL, NULL, NULL

-- too few columns
INSERT INTO {t} SELECT 1, 'a'
! (?i)columns?

-- too many columns
INSERT INTO {t} SELECT *, 1 FROM t
! (?i)columns?

-- a name twice
INSERT INTO {t} (id, ID) VALUES (1, 2)
! (?i)id

-- a column that is not there
INSERT INTO {t} (wages) VALUES (1)
! wages

-- a name that the table does not have
INSERT INTO {t} BY NAME SELECT 1 AS wages, 2 AS id
! wages

-- text is not a number
INSERT INTO {t} (n) VALUES ('5')
! (?i)safely cast

-- a number that does not fit
INSERT INTO {t} (n) SELECT 3000000000L
! (?i)overflow|out of range

-- a struct with too few parts
INSERT INTO {t} (s) SELECT named_struct('x', 1)
! (?i)y

-- rows outside of what they replace
INSERT INTO {t} REPLACE WHERE dep = 'hr' SELECT id, 'it', n, NULL, NULL, NULL FROM s WHERE id < 3
= SELECT * FROM t WHERE NOT dep <=> 'hr' UNION ALL SELECT id, 'it', n, NULL, NULL, NULL FROM s WHERE id < 3
