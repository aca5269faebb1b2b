-- Jobs, their switches and watermarks, and one row for each fire that was answered for.
CREATE TABLE argus_sched.namespace (
    namespace     text PRIMARY KEY,
    claim_store   text NOT NULL,
    schedule_hash text,
    synced_by     uuid,
    synced_at     timestamptz
);

-- `watermark` is the last due time answered for, `next_due` the first one after it: a job has a gap exactly
-- when next_due has passed. The fill factor leaves room for updates in place, since each claim moves both.
CREATE TABLE argus_sched.job (
    namespace            text NOT NULL,
    job_id               text NOT NULL,
    name                 text NOT NULL,
    trigger              text NOT NULL,
    watermark            timestamptz NOT NULL,
    next_due             timestamptz,
    declared             boolean NOT NULL DEFAULT true,
    enabled              boolean NOT NULL DEFAULT true,
    auto_disabled        boolean NOT NULL DEFAULT false,
    disabled_by          text,
    disabled_reason      text,
    disabled_at          timestamptz,
    consecutive_failures integer NOT NULL DEFAULT 0,
    first_seen           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, job_id)
) WITH (fillfactor = 50);

-- Who switched a job on or off, when and why; never pruned.
CREATE TABLE argus_sched.job_switch (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    job_id    text NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    enabled   boolean NOT NULL,
    who       text NOT NULL,
    reason    text NOT NULL
);

-- The primary key is the claim. `origin` is 'schedule', or 'manual:<uuid>' and 'start:<uuid>' for runs outside
-- the schedule. `missed` counts the earlier due times that this row answers for.
CREATE TABLE argus_sched.run (
    namespace   text NOT NULL,
    job_id      text NOT NULL,
    due         timestamptz NOT NULL,
    origin      text NOT NULL DEFAULT 'schedule',
    outcome     text NOT NULL,
    attempt     integer NOT NULL DEFAULT 1,
    worker      uuid NOT NULL,
    epoch       bigint NOT NULL DEFAULT 0,
    token       uuid NOT NULL,
    missed      integer NOT NULL DEFAULT 0,
    claimed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at  timestamptz,
    finished_at timestamptz,
    error       text,
    PRIMARY KEY (namespace, job_id, due, origin)
);
CREATE INDEX run_open ON argus_sched.run (namespace, worker) WHERE finished_at IS NULL;
CREATE INDEX run_age ON argus_sched.run USING brin (claimed_at);

-- One row per process. `lock_key` is the advisory key it holds for its lifetime, so that its death shows.
CREATE TABLE argus_sched.worker (
    instance      uuid PRIMARY KEY,
    namespace     text NOT NULL,
    host          text NOT NULL,
    pid           integer NOT NULL,
    lock_key      bigint NOT NULL,
    schedule_hash text NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    heartbeat_at  timestamptz NOT NULL DEFAULT now(),
    stopped_at    timestamptz,
    resign_for    double precision  -- somebody asks it to give leadership up for so many seconds
);
CREATE INDEX worker_namespace ON argus_sched.worker (namespace);
