-- all clauses at once
MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED AND t.dep = 'it' THEN DELETE
  WHEN MATCHED THEN UPDATE SET n = s.n, dep = s.dep
  WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT (id, dep, n) VALUES (s.id, s.dep, s.n)
  WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE
  WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = coalesce(t.n, 0) + 1
= SELECT 1, 'new', 100, day, s, l FROM t WHERE id = 1
  UNION ALL SELECT id, dep, coalesce(n, 0) + 1, day, s, l FROM t WHERE id IS NULL OR id IN (3, 5)
  UNION ALL SELECT id, dep, n, NULL, NULL, NULL FROM s WHERE id IN (6, 7)

-- rows that only the target has, kept by a condition
MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.n > 15 THEN DELETE
= SELECT * FROM t WHERE coalesce(id IN (1, 2), false) OR NOT coalesce(n > 15, false)

-- nothing but updates
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.n = s.n + t.n
= SELECT id, dep, CASE WHEN id = 1 THEN 110 WHEN id = 2 THEN NULL ELSE n END, day, s, l FROM t

-- nothing but deletes
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED AND s.n IS NULL THEN DELETE
= SELECT * FROM t WHERE id IS NULL OR id != 2

-- nothing but inserts, under a condition
MERGE INTO {t} t USING s ON t.id = s.id
  WHEN NOT MATCHED AND s.n > 60 THEN INSERT (n, id) VALUES (s.n, s.id)
= SELECT * FROM t UNION ALL SELECT 7, NULL, 70, NULL, NULL, NULL

-- inserts of several kinds, the first that fits
MERGE INTO {t} t USING s ON t.id = s.id
  WHEN NOT MATCHED AND s.n > 60 THEN INSERT (id) VALUES (s.id)
  WHEN NOT MATCHED AND s.dep = 'hr' THEN INSERT (dep) VALUES (upper(s.dep))
  WHEN NOT MATCHED THEN INSERT (n) VALUES (s.n)
= SELECT * FROM t UNION ALL SELECT 7, NULL, NULL, NULL, NULL, NULL
  UNION ALL SELECT NULL, 'HR', NULL, NULL, NULL, NULL
  UNION ALL SELECT NULL, NULL, 0, NULL, NULL, NULL

-- null is equal to null
MERGE INTO {t} t USING s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET dep = s.dep
= SELECT id, CASE WHEN id = 1 THEN 'new' WHEN id = 2 THEN 'it' WHEN id IS NULL THEN 'x' ELSE dep END,
    n, day, s, l FROM t

-- a condition that is never true
MERGE INTO {t} t USING s ON false
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, dep, n) VALUES (s.id, s.dep, s.n)
= SELECT * FROM t UNION ALL SELECT id, dep, n, NULL, NULL, NULL FROM s

-- a condition that is null
MERGE INTO {t} t USING s ON CAST(NULL AS BOOLEAN) WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
= SELECT * FROM t UNION ALL SELECT id, NULL, NULL, NULL, NULL, NULL FROM s

-- one row of the source for all rows
MERGE INTO {t} t USING (SELECT 3 AS w) s ON true WHEN MATCHED THEN UPDATE SET n = s.w
= SELECT id, dep, 3, day, s, l FROM t

-- a condition on the source alone
MERGE INTO {t} t USING s ON s.id = 7 WHEN MATCHED THEN UPDATE SET n = s.n
= SELECT id, dep, 70, day, s, l FROM t

-- a condition on the target alone, beside the key
MERGE INTO {t} t USING s ON t.id = s.id AND t.dep = 'hr'
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
= SELECT * FROM t WHERE id IS NULL OR id != 1 UNION ALL
  SELECT id, NULL, NULL, NULL, NULL, NULL FROM s WHERE id IS NULL OR id != 1

-- keys that are computed
MERGE INTO {t} t USING s ON t.id + 2 = s.id - 3 WHEN MATCHED THEN UPDATE SET dep = s.dep
= SELECT id, CASE WHEN id = 1 THEN 'hr' WHEN id = 2 THEN NULL ELSE dep END, n, day, s, l FROM t

-- no equality at all
MERGE INTO {t} t USING (SELECT 45 AS bound) s ON t.n < s.bound WHEN MATCHED THEN DELETE
= SELECT * FROM t WHERE NOT coalesce(n < 45, false)

-- conditions of clauses that are null
MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED AND NULL THEN DELETE WHEN MATCHED AND t.n > NULL THEN UPDATE SET n = 0
  WHEN NOT MATCHED AND s.n > NULL THEN INSERT (id) VALUES (s.id)
= SELECT * FROM t

-- the source is named in front
WITH w AS (SELECT id, n FROM s WHERE n IS NOT NULL)
  MERGE INTO {t} t USING w ON t.id = w.id WHEN MATCHED THEN UPDATE SET n = w.n
= SELECT id, dep, if(id <=> 1, 100, n), day, s, l FROM t

-- the source is put together
MERGE INTO {t} t USING (SELECT id FROM s WHERE id < 2 UNION SELECT 5 EXCEPT SELECT 1) w ON t.id = w.id
  WHEN MATCHED THEN DELETE
= SELECT * FROM t WHERE id IS NULL OR id != 5

-- the source is written down
MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'one'), (9, 'nine') AS v (k, name)) w ON t.id = w.k
  WHEN MATCHED THEN UPDATE SET dep = w.name WHEN NOT MATCHED THEN INSERT (id, dep) VALUES (k, name)
= SELECT id, if(id <=> 1, 'one', dep), n, day, s, l FROM t
  UNION ALL SELECT 9, 'nine', NULL, NULL, NULL, NULL

-- the source is cut
MERGE INTO {t} t USING (SELECT id, n FROM s ORDER BY n DESC LIMIT 1) w ON t.id = w.id
  WHEN MATCHED THEN UPDATE SET n = w.n
= SELECT id, dep, if(id <=> 1, 100, n), day, s, l FROM t

-- the source is the target
MERGE INTO {t} t USING {t} w ON t.id = w.id
  WHEN MATCHED AND w.n >= 40 THEN DELETE WHEN MATCHED THEN UPDATE SET n = w.n + 1
= SELECT id, dep, if(id IS NULL, n, n + 1), day, s, l FROM t WHERE id IS NULL OR id NOT IN (4, 5)

-- the source is counted from the target
MERGE INTO {t} t USING (SELECT dep, count(*) AS c FROM {t} GROUP BY dep) w ON t.dep = w.dep
  WHEN MATCHED THEN UPDATE SET n = w.c
= SELECT id, dep, CASE WHEN dep = 'hr' THEN 3 WHEN dep = 'it' THEN 2 ELSE n END, day, s, l FROM t

-- all columns by name, in another order, with one that the target does not have
MERGE INTO {t} t USING (SELECT 1 AS extra, l, s, day, n * 2 AS N, dep, id FROM t WHERE id < 3) w ON t.id = w.id
  WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
= SELECT id, dep, if(coalesce(id < 3, false), n * 2, n), day, s, l FROM t

-- names in other cases, in another order
MERGE INTO {t} AS T USING s AS S ON T.ID = S.Id
  WHEN MATCHED THEN UPDATE SET DEP = S.DEP, t.N = s.N WHEN NOT MATCHED THEN INSERT (N, Id) VALUES (S.N, S.ID)
= SELECT id, CASE WHEN id = 1 THEN 'new' ELSE dep END,
    CASE WHEN id = 1 THEN 100 WHEN id = 2 THEN NULL ELSE n END, day, s, l FROM t
  UNION ALL SELECT id, NULL, n, NULL, NULL, NULL FROM s WHERE id IS NULL OR id > 2

-- parts of structs
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s.x = s.n
= SELECT id, dep, n, day, CASE WHEN id = 1 THEN named_struct('x', 100, 'y', s.y)
    WHEN id = 2 THEN named_struct('x', CAST(NULL AS INT), 'y', CAST(NULL AS STRUCT<z: STRING>)) ELSE s END, l FROM t

-- a whole struct in another order
MERGE INTO {t} t USING (SELECT 3 AS id, named_struct('y', named_struct('z', 'm'), 'x', 8) AS v) w ON t.id = w.id
  WHEN MATCHED THEN UPDATE SET s = w.v
= SELECT id, dep, n, day, if(id <=> 3, named_struct('x', 8, 'y', named_struct('z', 'm')), s), l FROM t

-- values of other types that fit
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.id * 2L, dep = s.id
= SELECT id, if(coalesce(id < 3, false), CAST(id AS STRING), dep), if(coalesce(id < 3, false), id * 2, n), day, s, l FROM t

-- repeated rows of the source may all be inserted
MERGE INTO {t} t USING (SELECT explode(array(1, 1, 8, 8)) AS id) w ON t.id = w.id
  WHEN NOT MATCHED THEN INSERT (id) VALUES (w.id)
= SELECT * FROM t UNION ALL SELECT explode(array(8, 8)), NULL, NULL, NULL, NULL, NULL

-- repeated rows of the source of which one passes
MERGE INTO {t} t USING (SELECT 1 AS id, explode(array(1, 2)) AS v) w ON t.id = w.id AND w.v = 2
  WHEN MATCHED THEN UPDATE SET n = w.v
= SELECT id, dep, if(id <=> 1, 2, n), day, s, l FROM t

-- an empty source
MERGE INTO {t} t USING (SELECT * FROM s WHERE false) s ON t.id = s.id
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (1) WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE
= SELECT * FROM t WHERE id IS NULL OR id != 3

-- an empty target
DELETE FROM {t}; MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)
= SELECT id, NULL, n, NULL, NULL, NULL FROM s

-- rows move to other partitions
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET dep = 'moved', day = date'2030-01-01'
= SELECT id, if(coalesce(id < 3, false), 'moved', dep), n, if(coalesce(id < 3, false), date'2030-01-01', day), s, l FROM t

-- constants alone, none of the source's columns
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (0)
= SELECT id, dep, if(coalesce(id < 3, false), 1, n), day, s, l FROM t
  UNION ALL SELECT explode(array(0, 0, 0)), NULL, NULL, NULL, NULL, NULL

-- two rows of the source want the same row
MERGE INTO {t} t USING (SELECT 1 AS id, explode(array(1, 2)) AS v) w ON t.id = w.id WHEN MATCHED THEN UPDATE SET n = w.v
! (?i)matched

-- a name that both sides have
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = n
! (?i)ambiguous

-- a condition that both sides could mean
MERGE INTO {t} t USING s ON id = s.id WHEN MATCHED THEN DELETE
! (?i)ambiguous

-- a column of the target in a row that is not there
MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED AND t.n > 1 THEN INSERT (id) VALUES (s.id)
! n

-- a column of the source in a row that is not there
MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.n
! n

-- columns that the source does not have
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
! day

-- a column that is not there
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET wages = 1
! wages

-- a column twice
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1, n = 2
! n

-- a column twice in an insert
MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (n, n) VALUES (1, 2)
! n

-- text is not a number
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.dep
! (?i)safely cast

-- chance is not a condition
MERGE INTO {t} t USING s ON t.id = s.id AND rand() > t.id WHEN MATCHED THEN DELETE
! (?i)deterministic

-- chance is not a condition of a clause
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED AND rand() > t.id THEN DELETE
! (?i)deterministic

-- aggregates are no conditions
MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED AND max(s.n) > 5 THEN DELETE
! (?i)aggregate

-- no clause at all
MERGE INTO {t} t USING s ON t.id = s.id
! (?i)when
