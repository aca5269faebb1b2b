-- One row per namespace: who leads, and under which number. Its epoch only ever grows.
CREATE TABLE argus_sched.leader (
    namespace         text PRIMARY KEY,
    lock_key          bigint NOT NULL UNIQUE,
    epoch             bigint NOT NULL DEFAULT 0,
    instance          uuid,
    host              text,
    container         text,
    pid               integer,
    backend_pid       integer,
    schedule_hash     text,
    system_identifier text,
    timeline          integer,
    elected_at        timestamptz
);
