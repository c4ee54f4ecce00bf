-- What happened, in one feed for each organization. A position is given after the commit, so that no reader can pass an
-- event that becomes visible late; until then an event has none.
create table events (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  type text not null,
  unit_id uuid,
  collection_id uuid,
  is_test boolean not null,
  data jsonb not null,
  endpoint_id uuid,
  position bigint,
  created_at timestamptz(3) not null
);
create index events_unnumbered on events (id) where position is null;
create unique index events_by_organization on events (organization_id, position) where position is not null;
create index events_by_type on events (organization_id, type, position) where position is not null;
create index events_by_unit on events (unit_id, position) where position is not null;
create index events_by_collection on events (collection_id, position) where position is not null;
create index events_by_age on events (created_at);

create table event_feeds (
  name text not null primary key,
  last_position bigint not null
);
insert into event_feeds (name, last_position) values ('events', 0);

create table webhook_endpoints (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  url text not null,
  event_types jsonb,
  description text,
  status text not null constraint webhook_endpoints_status check (status in ('enabled', 'paused')),
  secrets jsonb not null,
  replay_from bigint,
  replay_until bigint,
  replay_since timestamptz(3),
  lease_owner text,
  leased_until timestamptz(3),
  created_at timestamptz(3) not null,
  constraint webhook_endpoints_replay check ((replay_from is null) = (replay_until is null))
);
create index webhook_endpoints_by_organization on webhook_endpoints (organization_id, created_at, id);

create table webhook_queue (
  endpoint_id uuid not null references webhook_endpoints (id),
  event_id uuid not null,
  line uuid not null,
  position bigint not null,
  attempts bigint not null,
  due_at timestamptz(3) not null,
  last_error text,
  created_at timestamptz(3) not null,
  primary key (endpoint_id, event_id)
);
create index webhook_queue_by_line on webhook_queue (endpoint_id, line, position);
create index webhook_queue_due on webhook_queue (endpoint_id, due_at, position);

create table webhook_deliveries (
  id uuid not null primary key,
  endpoint_id uuid not null references webhook_endpoints (id),
  event_id uuid not null,
  attempt bigint not null,
  status text not null constraint webhook_deliveries_status check (status in ('delivered', 'failed')),
  response_status bigint,
  error text,
  milliseconds bigint not null,
  created_at timestamptz(3) not null
);
create index webhook_deliveries_by_endpoint on webhook_deliveries (endpoint_id, created_at, id);
create index webhook_deliveries_by_age on webhook_deliveries (created_at);
