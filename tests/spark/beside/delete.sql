-- a condition that is null deletes nothing
DELETE FROM {t} WHERE CAST(NULL AS BOOLEAN)
= SELECT * FROM t

-- a comparison with null deletes nothing
DELETE FROM {t} WHERE n = NULL OR dep > NULL
= SELECT * FROM t

-- null is found by null-safe equality
DELETE FROM {t} WHERE id <=> NULL OR n <=> NULL
= SELECT * FROM t WHERE id IS NOT NULL AND n IS NOT NULL

-- a list with null
DELETE FROM {t} WHERE id IN (1, 5, NULL)
= SELECT * FROM t WHERE NOT coalesce(id IN (1, 5), false)

-- not in a list with null is never true
DELETE FROM {t} WHERE id NOT IN (1, NULL)
= SELECT * FROM t

-- not in a list leaves rows whose column is null
DELETE FROM {t} WHERE id NOT IN (1, 2) AND n >= 10
= SELECT * FROM t WHERE NOT coalesce(id NOT IN (1, 2) AND n >= 10, false)

-- a part of a part of a struct
DELETE FROM {t} WHERE s.y.z = 'b' OR s.x = 4
= SELECT * FROM t WHERE NOT coalesce(s.y.z = 'b' OR s.x = 4, false)

-- elements of arrays
DELETE FROM {t} WHERE array_contains(l, 4) OR size(l) = 0
= SELECT * FROM t WHERE NOT coalesce(array_contains(l, 4) OR size(l) = 0, false)

-- keys that another table has
DELETE FROM {t} WHERE id IN (SELECT id FROM s)
= SELECT * FROM t WHERE id IS NULL OR id NOT IN (1, 2)

-- keys that another table does not have, which knows a null
DELETE FROM {t} WHERE id NOT IN (SELECT id FROM s)
= SELECT * FROM t

-- keys that another table does not have
DELETE FROM {t} WHERE id NOT IN (SELECT id FROM s WHERE id IS NOT NULL)
= SELECT * FROM t WHERE id IS NULL OR id IN (1, 2)

-- pairs of columns
DELETE FROM {t} WHERE (id, dep) IN (SELECT id, dep FROM s)
= SELECT * FROM t WHERE id IS NULL OR id != 2

-- rows that have a partner
DELETE FROM {t} AS x WHERE EXISTS (SELECT 1 FROM s WHERE s.id = x.id + 1)
= SELECT * FROM t WHERE id IS NULL OR id NOT IN (1, 5)

-- rows that have no partner, and another condition
DELETE FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = x.id) AND x.dep = 'hr'
= SELECT * FROM t WHERE NOT coalesce(dep = 'hr' AND (id IS NULL OR id NOT IN (1, 2)), false)

-- a value that a query gives
DELETE FROM {t} WHERE n < (SELECT avg(n) FROM s)
= SELECT * FROM t WHERE NOT coalesce(n < 57.5, false)

-- a value that a query gives for each row
DELETE FROM {t} x WHERE id < (SELECT max(s.id) FROM s WHERE s.dep = x.dep)
= SELECT * FROM t WHERE NOT coalesce(id < 6 AND dep = 'hr', false)

-- a query or something else
DELETE FROM {t} WHERE id IN (SELECT id FROM s) OR dep = 'it'
= SELECT * FROM t WHERE NOT (coalesce(id IN (1, 2), false) OR coalesce(dep = 'it', false))

-- the greatest row of the table itself
DELETE FROM {t} WHERE id = (SELECT max(id) FROM {t})
= SELECT * FROM t WHERE id IS NULL OR id != 5

-- every row
DELETE FROM {t}
= SELECT * FROM t WHERE false

-- every row, by another word
TRUNCATE TABLE {t}
= SELECT * FROM t WHERE false

-- a condition that is known before
DELETE FROM {t} WHERE 1 = 1 AND current_date() > date'2020-01-01'
= SELECT * FROM t WHERE false

-- a partition and a part of another
DELETE FROM {t} WHERE dep = 'hr' OR (dep = 'it' AND n = 50)
= SELECT * FROM t WHERE NOT coalesce(dep = 'hr' OR (dep = 'it' AND n = 50), false)

-- one statement after the other meets rows that are gone
DELETE FROM {t} WHERE id = 1; DELETE FROM {t} WHERE id <= 2; DELETE FROM {t} WHERE dep = 'hr'
= SELECT * FROM t WHERE NOT coalesce(id <= 2, false) AND NOT coalesce(dep = 'hr', false)

-- chance is not a condition
DELETE FROM {t} WHERE rand() > 0.5
! (?i)deterministic

-- neither is an aggregate
DELETE FROM {t} WHERE max(n) > 5
! (?i)aggregate

-- a column that is not there
DELETE FROM {t} WHERE wages > 5
! wages

-- a table that is not there
DELETE FROM {t}_nowhere WHERE id = 1
! nowhere

-- something that is not a condition
DELETE FROM {t} WHERE NULL
! (?i)boolean
