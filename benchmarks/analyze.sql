-- The tables of `groupstorm analyze` in DuckDB, for traces with rows of members in which nothing is deleted.
-- `rows` is a view of the traces with the column `run`.

CREATE TEMP TABLE runs AS
SELECT run, "group", max(time_us) AS end_us, max(seq) AS last_seq,
       1000 * coalesce(max(record_rate) FILTER (event = 'scenario_started'), 0) AS record_rate,
       1000 * coalesce(max(process_rate) FILTER (event = 'scenario_started'), 0) AS process_rate
FROM rows GROUP BY ALL;

CREATE TEMP TABLE facts AS
WITH named AS (
    SELECT run, "group", seq, time_us,
           CASE WHEN event = 'partitions_assigned' THEN 'own' ELSE 'end' END AS kind,
           member, generation, coalesce(duration_us, 0) AS callback_us, event, cause,
           unnest(partitions) AS "partition", unnest(positions) AS "position"
    FROM rows
    WHERE event IN ('partitions_assigned', 'partitions_revoked', 'partitions_lost', 'member_crashed')
), ordered AS (
    SELECT *, coalesce(lag(kind) OVER per_owner, 'end') AS before FROM named
    WINDOW per_owner AS (PARTITION BY run, "group", "partition", member ORDER BY seq)
)
SELECT * EXCLUDE (before),
       lead(seq) OVER per_owner AS to_seq, lead(time_us) OVER per_owner AS to_us,
       lead("position") OVER per_owner AS to_position, lead(event) OVER per_owner AS ended_by,
       lead(cause) OVER per_owner AS end_cause
FROM ordered WHERE kind <> before
WINDOW per_owner AS (PARTITION BY run, "group", "partition", member ORDER BY seq);

CREATE TEMP TABLE steps AS
WITH stated AS (
    SELECT run, "group", seq, time_us, 'exist' AS kind, unnest(partitions) AS "partition"
    FROM rows WHERE event IN ('scenario_started', 'partitions_created')
), together AS (
    SELECT run, "group", "partition", seq, time_us, kind, member, generation, callback_us, event, cause,
           CASE kind WHEN 'own' THEN 1 ELSE -1 END AS change, 1 AS rank
    FROM facts
    UNION ALL BY NAME SELECT *, 0 AS change, 0 AS rank FROM stated
), counted AS (
    SELECT *, sum(change) OVER per_partition AS owners, row_number() OVER per_partition AS place
    FROM together WINDOW per_partition AS (PARTITION BY run, "group", "partition" ORDER BY seq, rank)
)
SELECT * EXCLUDE (change) FROM counted WHERE kind <> 'exist' OR place = 1;

CREATE TEMP TABLE beginning AS  -- of ownership, in the trace of a scenario
SELECT run, "group", min(time_us) AS begun_us FROM rows WHERE event = 'member_started' GROUP BY ALL;

CREATE TEMP TABLE rounds AS
WITH changes AS (
    SELECT run, "group", seq, time_us, state, cause, generation, protocol, "count",
           count_if(state = 'PreparingRebalance') OVER in_order AS round
    FROM rows WHERE event = 'group_state_changed'
    WINDOW in_order AS (PARTITION BY run, "group" ORDER BY seq)
), found AS (
    SELECT run, "group", round, min(seq) AS prepared_seq, min(time_us) AS prepared_us,
           max(cause) FILTER (state = 'PreparingRebalance') AS cause,
           arg_max({'generation': generation, 'seq': seq, 'time_us': time_us, 'protocol': protocol,
                    'members': "count"}, seq) FILTER (state = 'CompletingRebalance') AS last,
           min(time_us) FILTER (state = 'Stable') AS stable_us
    FROM changes WHERE round > 0 GROUP BY ALL
), generations AS (
    SELECT * FROM (
        SELECT run, "group", round, generation, state, seq AS from_seq,
               coalesce(lead(seq) OVER (PARTITION BY run, "group" ORDER BY seq), 1::BIGINT << 62) AS until_seq
        FROM changes WHERE round > 0 AND state IN ('PreparingRebalance', 'CompletingRebalance')
    ) WHERE state = 'CompletingRebalance'
), first_answers AS (
    SELECT a.run, a."group", g.round, g.from_seq, a.member_id, min(a.seq) AS first_seq, min(a.time_us) AS first_us
    FROM rows a JOIN generations g USING (run, "group", generation)
    WHERE a.event = 'sync_answered' AND a.error IS NULL AND a.seq > g.from_seq AND a.seq < g.until_seq
    GROUP BY ALL
), last_answers AS (
    SELECT run, "group", round, max(first_us) AS answered_us
    FROM first_answers a
    WHERE NOT EXISTS (
        SELECT 1 FROM rows r WHERE r.event = 'member_replaced' AND r.run = a.run AND r."group" = a."group"
        AND r.member_id = a.member_id AND r.seq > a.from_seq AND r.seq < a.first_seq
    )
    GROUP BY ALL
)
SELECT run, "group", round, prepared_seq, prepared_us, cause, last.generation AS generation,
       last.seq AS completing_seq, last.time_us AS completing_us, last.protocol AS protocol,
       last.members AS members, stable_us, answered_us,
       CASE WHEN stable_us IS NOT NULL THEN answered_us - prepared_us END AS latency_us
FROM found LEFT JOIN last_answers USING (run, "group", round);

CREATE TEMP TABLE handovers AS
WITH following AS (
    SELECT *, lead(seq) OVER w AS close_seq, lead(time_us) OVER w AS close_us, lead(member) OVER w AS new_owner,
           lead(generation) OVER w AS new_generation, lead(callback_us) OVER w AS new_callback_us
    FROM steps WINDOW w AS (PARTITION BY run, "group", "partition" ORDER BY seq, rank)
), spans AS (
    SELECT r.*, coalesce(lead(prepared_seq) OVER (PARTITION BY run, "group" ORDER BY prepared_seq), last_seq + 1)
           AS until_seq
    FROM rounds r JOIN runs USING (run, "group")
), places AS (  -- an ASOF join with few runs takes ten times as long as all other tables together
    SELECT *, unnest(range(prepared_seq // 1024, until_seq // 1024 + 1)) AS place FROM spans
), gaps AS (
    SELECT f.*, coalesce(close_us, end_us) AS until_us, coalesce(close_seq, last_seq + 1) AS at_seq,
           greatest(time_us, begun_us) AS since_us, coalesce(close_us, end_us) - since_us AS gap_us
    FROM following f JOIN beginning USING (run, "group") JOIN runs USING (run, "group")
    WHERE owners = 0 AND coalesce(close_us, end_us) > greatest(time_us, begun_us)
)
SELECT g.run, g."group", "partition", since_us AS from_us, until_us AS to_us, gap_us,
       CASE WHEN member = new_owner THEN gap_us
            ELSE least(gap_us, coalesce(callback_us, 0))
                 + least(gap_us - least(gap_us, coalesce(callback_us, 0)), coalesce(new_callback_us, 0))
       END AS paused_us,
       member AS old_owner, new_owner, g.generation AS old_generation, new_generation,
       new_generation - g.generation AS generations,
       coalesce(event, CASE WHEN g.time_us < since_us THEN 'member_started' ELSE 'partitions_created' END) AS ended_by,
       g.cause,
       r.prepared_us, r.cause AS rebalance_cause
FROM gaps g LEFT JOIN places r
  ON g.run = r.run AND g."group" = r."group" AND g.at_seq // 1024 = r.place
     AND g.at_seq > r.prepared_seq AND g.at_seq <= r.until_seq;

CREATE TEMP TABLE intervals AS
WITH begun AS (
    SELECT run, "group", "partition", member, generation, seq AS from_seq, time_us AS from_us,
           "position" AS from_position, to_seq, to_us, to_position, ended_by, end_cause AS cause
    FROM facts WHERE kind = 'own'
), opened AS (
    SELECT * FROM begun WHERE to_seq IS NULL
), named AS (
    SELECT run, "group", seq, time_us, member,
           CASE WHEN event = 'processing_rates_changed' THEN 'rates'
                WHEN event LIKE '%paused' THEN 'pause' ELSE 'resume' END AS kind,
           unnest(partitions) AS "partition", unnest(positions) AS "position", unnest(rates) AS rate
    FROM rows
    WHERE event IN ('processing_rates_changed', 'member_paused', 'member_resumed', 'partitions_paused',
                    'partitions_resumed')
), lines AS (
    SELECT n.* FROM named n JOIN opened o USING (run, "group", "partition", member) WHERE n.seq > o.from_seq
    UNION ALL BY NAME
    SELECT run, "group", "partition", member, from_seq AS seq, from_us AS time_us, 'own' AS kind,
           from_position AS "position" FROM opened
), states AS (
    SELECT *, coalesce(last_value(CASE WHEN kind <> 'rates' THEN kind END IGNORE NULLS) OVER (
        PARTITION BY run, "group", "partition", member ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 'own') = 'pause' AS paused FROM lines
), ends AS (
    SELECT run, "group", "partition", member,
           arg_max({'kind': kind, 'time_us': time_us, 'position': "position"}, seq) AS last,
           arg_max(rate, seq) FILTER (kind = 'rates') AS rate
    FROM states WHERE (kind = 'resume') = paused GROUP BY ALL
), changed AS (
    SELECT run, "group", time_us, seq, unnest(partitions) AS "partition", unnest(positions) AS "position",
           unnest(rates) AS rate
    FROM rows WHERE event = 'record_rates_changed'
), logs AS (
    SELECT run, "group", "partition", arg_max("position", seq) AS log_position, arg_max(time_us, seq) AS log_us,
           arg_max(rate, seq) AS log_rate
    FROM changed GROUP BY ALL
), model AS (
    SELECT o.* EXCLUDE (to_us, to_position), end_us AS to_us, CASE WHEN last.kind = 'pause' THEN last.position
        WHEN last.position IS NOT NULL THEN greatest(last.position, least(
            coalesce(log_position, 0)
                + coalesce(log_rate, record_rate)::HUGEINT * (end_us - coalesce(log_us, 0)) // 1000000000,
            last.position + coalesce(rate, process_rate)::HUGEINT * (end_us - last.time_us) // 1000000000
        )) END AS to_position
    FROM opened o JOIN ends USING (run, "group", "partition", member) JOIN runs USING (run, "group")
    LEFT JOIN logs USING (run, "group", "partition")
)
SELECT * FROM begun WHERE to_seq IS NOT NULL UNION ALL BY NAME SELECT * FROM model;

CREATE TEMP TABLE members AS
SELECT run, "group", member, seq, time_us,
       lead(time_us) OVER (PARTITION BY run, "group", member ORDER BY seq) AS until_us,
       event, cause, error, generation, len(partitions) AS partitions, duration_us
FROM rows WHERE list_contains($member_events, event);

CREATE TEMP TABLE figures AS
WITH of_rounds AS (
    SELECT run, "group", count(stable_us) AS generations, avg(latency_us) AS latency_avg_us,
           max(latency_us) AS latency_max_us
    FROM rounds GROUP BY ALL
), of_handovers AS (
    SELECT run, "group", sum(gap_us)::BIGINT AS unowned_us, max(gap_us) AS unowned_max_us,
           sum(paused_us)::BIGINT AS paused_us
    FROM handovers GROUP BY ALL
)
SELECT * FROM of_rounds FULL JOIN of_handovers USING (run, "group");
