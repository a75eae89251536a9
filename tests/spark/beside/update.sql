-- every row
UPDATE {t} SET n = -1
= SELECT id, dep, -1 AS n, day, s, l FROM t

-- a condition that is null
UPDATE {t} SET n = -1 WHERE id = NULL
= SELECT * FROM t

-- an alias in front of columns
UPDATE {t} AS x SET x.n = x.n + 1, x.dep = concat(x.dep, '!') WHERE x.id = 1
= SELECT id, if(id <=> 1, 'hr!', dep), if(id <=> 1, 11, n), day, s, l FROM t

-- columns trade their values
UPDATE {t} SET n = id, id = n WHERE id IS NOT NULL
= SELECT if(id IS NULL, id, n), dep, if(id IS NULL, n, id), day, s, l FROM t

-- columns out of their order and in other cases
UPDATE {t} SET DAY = date'2025-01-01', Id = 9 WHERE DEP = 'it'
= SELECT if(dep <=> 'it', 9, id), dep, n, if(dep <=> 'it', date'2025-01-01', day), s, l FROM t

-- parts of a struct
UPDATE {t} SET s.x = 7, s.y.z = 'q' WHERE id = 1
= SELECT id, dep, n, day, if(id <=> 1, named_struct('x', 7, 'y', named_struct('z', 'q')), s), l FROM t

-- a struct becomes null
UPDATE {t} SET s = NULL, l = NULL WHERE id <= 3
= SELECT id, dep, n, day, if(coalesce(id <= 3, false), NULL, s), if(coalesce(id <= 3, false), NULL, l) FROM t

-- a whole struct whose parts are in another order
UPDATE {t} SET s = named_struct('y', named_struct('z', 'k'), 'x', 1) WHERE id = 2
= SELECT id, dep, n, day, if(id <=> 2, named_struct('x', 1, 'y', named_struct('z', 'k')), s), l FROM t

-- elements of arrays
UPDATE {t} SET l = transform(l, e -> e + 1) WHERE l IS NOT NULL
= SELECT id, dep, n, day, s, transform(l, e -> e + 1) FROM t

-- rows move to another partition
UPDATE {t} SET dep = 'moved', n = n * 2 WHERE dep = 'hr'
= SELECT id, if(dep <=> 'hr', 'moved', dep), if(dep <=> 'hr', n * 2, n), day, s, l FROM t

-- rows move to the partition of null
UPDATE {t} SET dep = NULL WHERE id = 1
= SELECT id, if(id <=> 1, NULL, dep), n, day, s, l FROM t

-- keys that another table has
UPDATE {t} SET n = 0 WHERE id IN (SELECT id FROM s)
= SELECT id, dep, if(coalesce(id IN (1, 2), false), 0, n), day, s, l FROM t

-- keys that another table does not have
UPDATE {t} SET n = 0 WHERE id NOT IN (SELECT id FROM s WHERE id IS NOT NULL)
= SELECT id, dep, if(coalesce(id NOT IN (1, 2), false), 0, n), day, s, l FROM t

-- rows that have a partner
UPDATE {t} x SET n = 0 WHERE EXISTS (SELECT 1 FROM s WHERE s.id = x.id AND s.dep = x.dep)
= SELECT id, dep, if(id <=> 2, 0, n), day, s, l FROM t

-- rows that have no partner
UPDATE {t} x SET n = 0 WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = x.id)
= SELECT id, dep, if(coalesce(id IN (1, 2), false), n, 0), day, s, l FROM t

-- a value that a query gives
UPDATE {t} SET dep = 'low' WHERE n <= (SELECT min(n) + 10 FROM s)
= SELECT id, if(coalesce(n <= 10, false), 'low', dep), n, day, s, l FROM t

-- the greatest row of the table itself
UPDATE {t} SET n = 0 WHERE id IN (SELECT max(id) FROM {t})
= SELECT id, dep, if(id <=> 5, 0, n), day, s, l FROM t

-- pairs of columns
UPDATE {t} SET n = 0 WHERE (id, dep) IN (SELECT id, dep FROM s)
= SELECT id, dep, if(id <=> 2, 0, n), day, s, l FROM t

-- values of wider types that fit, and numbers as text
UPDATE {t} SET n = 5L, dep = 17 WHERE id = 1
= SELECT id, if(id <=> 1, '17', dep), if(id <=> 1, 5, n), day, s, l FROM t

-- a moment becomes a day
UPDATE {t} SET day = timestamp'2024-06-01 23:59:59' WHERE id = 1
= SELECT id, dep, n, if(id <=> 1, date'2024-06-01', day), s, l FROM t

-- again and again
UPDATE {t} SET n = n + 1; UPDATE {t} SET n = n + 1 WHERE id > 1; DELETE FROM {t} WHERE id = 4; UPDATE {t} SET n = n + 1
= SELECT id, dep, n + if(coalesce(id > 1, false), 3, 2), day, s, l FROM t WHERE id IS NULL OR id != 4

-- a value that does not fit
UPDATE {t} SET n = 3000000000L WHERE id = 1
! (?i)overflow|out of range

-- text is not a number
UPDATE {t} SET n = '5' WHERE id = 1
! (?i)safely cast

-- a number is not a day
UPDATE {t} SET day = 5 WHERE id = 1
! (?i)safely cast

-- a column that is not there
UPDATE {t} SET wages = 5
! wages

-- a part that is not there
UPDATE {t} SET s.w = 5
! w

-- a part of something that is no struct
UPDATE {t} SET n.x = 5
! (?i)n

-- a column twice
UPDATE {t} SET n = 5, N = 6
! (?i)n

-- a struct and a part of it
UPDATE {t} SET s = NULL, s.x = 6
! (?i)s

-- a struct with too few parts
UPDATE {t} SET s = named_struct('x', 1)
! y

-- a struct with a part too many
UPDATE {t} SET s = named_struct('x', 1, 'y', named_struct('z', 'k'), 'w', 2)
! w

-- chance is not a condition
UPDATE {t} SET n = 1 WHERE id > rand()
! (?i)deterministic

-- an aggregate is not a value
UPDATE {t} SET n = max(n)
! (?i)aggregate
