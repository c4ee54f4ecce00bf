-- Read by SQLite and by Postgres: only what both understand. Ids and times come from the application.

create table organizations (
  id uuid not null primary key,
  name text not null,
  default_chain_id bigint,
  allowed_chain_ids jsonb not null,
  default_redirect_url text,
  cors_origins jsonb not null,
  quota_units bigint,
  quota_collections bigint,
  quota_chips bigint,
  quota_taps_per_month bigint,
  identity jsonb,
  created_at timestamptz(3) not null
);

create table api_keys (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  name text,
  hash text not null unique,
  hint text not null,
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3)
);
create index api_keys_by_organization on api_keys (organization_id, created_at, id);

create table publishable_keys (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  key text not null unique,
  name text not null,
  mode text not null constraint publishable_keys_mode check (mode in ('live', 'sandbox')),
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3)
);
create index publishable_keys_by_organization on publishable_keys (organization_id, created_at, id);

create table products (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  external_id text,
  name text not null,
  redirect_url text,
  created_at timestamptz(3) not null
);
create unique index products_external_id on products (external_id, organization_id) where external_id is not null;

create table lanes (
  id text not null primary key,
  chain_id bigint not null,
  address text not null,
  purpose text not null constraint lanes_purpose check (purpose in ('issuance', 'ownership', 'all')),
  next_nonce bigint,
  status text not null constraint lanes_status check (status in ('open', 'paused', 'halted')),
  reason text,
  lease_owner text,
  lease_epoch bigint not null,
  leased_until timestamptz(3),
  created_at timestamptz(3) not null
);
create unique index lanes_signer on lanes (chain_id, address);

create table collections (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  external_id text,
  name text not null,
  symbol text not null,
  chain_id bigint not null,
  address text not null,
  lane_id text not null references lanes (id),
  next_serial bigint not null,
  status text not null constraint collections_status check (status in ('deploying', 'active', 'failed')),
  redirect_url text,
  created_at timestamptz(3) not null
);
create unique index collections_external_id on collections (external_id, organization_id) where external_id is not null;
create unique index collections_address on collections (address, chain_id);
create index collections_by_organization on collections (organization_id, created_at, id);

create table units (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  collection_id uuid references collections (id),
  product_id uuid references products (id),
  external_id text,
  name text,
  attributes jsonb,
  redirect_url text,
  token_status text not null constraint units_token_status check (token_status in ('pending', 'active')),
  serial bigint,
  claimed boolean not null,
  created_at timestamptz(3) not null,
  constraint units_serial_when_active check ((token_status = 'active') = (serial is not null))
);
create unique index units_external_id on units (external_id, organization_id) where external_id is not null;
create unique index units_serial on units (serial, collection_id) where serial is not null;
create index units_by_organization on units (organization_id, created_at, id);

create table chips (
  chip_id text not null primary key,
  organization_id uuid not null references organizations (id),
  is_test boolean not null,
  uid text not null,
  wrapped_keys text not null,
  key_version bigint not null,
  counter bigint not null,
  emitted_counter bigint not null,
  scan_count bigint not null,
  unit_id uuid references units (id),
  reserved_for uuid,
  paired_at timestamptz(3),
  retired_at timestamptz(3),
  created_at timestamptz(3) not null,
  constraint chips_chip_id check (length(chip_id) = 10),
  constraint chips_counter check (counter between 0 and 16777215 and emitted_counter between 0 and 16777215),
  constraint chips_retired_unpaired check (retired_at is null or unit_id is null),
  constraint chips_reserved_unpaired check (reserved_for is null or unit_id is null)
);
create unique index chips_one_per_unit on chips (unit_id) where unit_id is not null;
create unique index chips_uid on chips (uid);
create index chips_by_organization on chips (organization_id, created_at, chip_id);

create table bulk_pairings (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  collection_id uuid not null references collections (id),
  size bigint not null,
  created_at timestamptz(3) not null,
  issued_at timestamptz(3)
);
create unique index bulk_pairings_one_open on bulk_pairings (collection_id) where issued_at is null;

create table taps (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  chip_id text not null references chips (chip_id),
  unit_id uuid not null references units (id),
  is_test boolean not null,
  key_version bigint not null,
  counter bigint not null,
  skipped bigint not null,
  created_at timestamptz(3) not null
);
create unique index taps_counter_once on taps (chip_id, key_version, counter);
create index taps_by_organization on taps (organization_id, created_at, id);
create index taps_by_chip on taps (organization_id, chip_id, created_at, id);
create index taps_by_unit on taps (organization_id, unit_id, created_at, id);

create table session_tokens (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  tap_id uuid not null references taps (id),
  chip_id text not null references chips (chip_id),
  unit_id uuid not null references units (id),
  hash text not null unique,
  status text not null constraint session_tokens_status check (status in ('valid', 'expired', 'revoked')),
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);

create table claims (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  unit_id uuid not null references units (id),
  status text not null constraint claims_status check (status in ('claiming', 'claimed', 'expired', 'failed')),
  execution text not null constraint claims_execution check (execution in ('service_relay', 'client_broadcast')),
  recipient text not null,
  customer_id text,
  "transaction" jsonb,
  authorization_digest text,
  transaction_hash text,
  failure jsonb,
  expires_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create unique index claims_one_open_per_unit on claims (unit_id) where status = 'claiming';
create index claims_by_unit on claims (unit_id, created_at, id);
create index claims_by_authorization on claims (authorization_digest);
create index claims_by_transaction on claims (transaction_hash) where transaction_hash is not null;

create table transfers (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  unit_id uuid not null references units (id),
  status text not null constraint transfers_status check (status in ('prepared', 'confirmed', 'expired', 'failed')),
  sender text not null,
  recipient text not null,
  customer_id text,
  "transaction" jsonb not null,
  authorization_digest text not null,
  transaction_hash text,
  failure jsonb,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create unique index transfers_one_open_per_unit on transfers (unit_id) where status = 'prepared';
create index transfers_by_unit on transfers (unit_id, created_at, id);
create index transfers_by_authorization on transfers (authorization_digest);
create index transfers_by_transaction on transfers (transaction_hash) where transaction_hash is not null;

create table chip_replacements (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  unit_id uuid not null references units (id),
  status text not null constraint chip_replacements_status check (status in ('prepared', 'submitted', 'confirmed', 'failed')),
  previous_chip_id text not null references chips (chip_id),
  chip_id text not null references chips (chip_id),
  transaction_hash text,
  failure jsonb,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create unique index chip_replacements_one_open_per_unit on chip_replacements (unit_id) where status in ('prepared', 'submitted');
create index chip_replacements_by_unit on chip_replacements (unit_id, created_at, id);
create index chip_replacements_by_previous_chip on chip_replacements (previous_chip_id);

create table identity_token_uses (
  organization_id uuid not null references organizations (id),
  jti text not null,
  expires_at timestamptz(3) not null,
  primary key (organization_id, jti)
);

create table idempotency_keys (
  scope text not null,
  key text not null,
  operation text not null,
  fingerprint text not null,
  response_status bigint,
  response_location text,
  sealed_body text,
  created_at timestamptz(3) not null,
  primary key (scope, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);

create table actors (
  id uuid not null primary key,
  machine text not null,
  machine_version bigint not null,
  organization_id uuid references organizations (id),
  snapshot jsonb not null,
  status text not null,
  state text not null,
  version bigint not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index actors_by_state on actors (machine, state, updated_at, id);

create table actor_timers (
  actor_id uuid not null references actors (id),
  send_id text not null,
  event jsonb not null,
  due_at timestamptz(3) not null,
  primary key (actor_id, send_id)
);
create index actor_timers_due on actor_timers (due_at);

create table actor_events (
  actor_id uuid not null references actors (id),
  number bigint not null,
  event jsonb not null,
  from_state text,
  to_state text not null,
  request_id text,
  at timestamptz(3) not null,
  primary key (actor_id, number)
);

create table transactions (
  id uuid not null primary key,
  lane_id text not null references lanes (id),
  chain_id bigint not null,
  kind text not null,
  nonce bigint not null,
  "to" text not null,
  call text not null,
  gas bigint not null,
  max_fee_per_gas text not null,
  max_priority_fee_per_gas text not null,
  status text not null constraint transactions_status check (status in ('allocated', 'signed', 'sent', 'mined', 'confirmed', 'reverted', 'final')),
  hash text,
  block_number bigint,
  block_hash text,
  sent_block bigint,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create unique index transactions_nonce on transactions (lane_id, nonce);
create index transactions_watched on transactions (lane_id, nonce) where status <> 'final';

create table transaction_attempts (
  hash text not null primary key,
  transaction_id uuid not null references transactions (id),
  kind text not null constraint transaction_attempts_kind check (kind in ('first', 'bump')),
  raw text not null,
  max_fee_per_gas text not null,
  max_priority_fee_per_gas text not null,
  first_sent_block bigint,
  send_count bigint not null,
  last_error text,
  created_at timestamptz(3) not null
);
create index transaction_attempts_by_transaction on transaction_attempts (transaction_id);

create table effects (
  id uuid not null primary key,
  actor_id uuid not null references actors (id),
  invoke_id text not null,
  src text not null,
  input jsonb not null,
  status text not null constraint effects_status check (status in ('open', 'done', 'failed', 'cancelled')),
  queue text not null,
  transaction_id uuid references transactions (id),
  attempts bigint not null,
  due_at timestamptz(3) not null,
  last_error text,
  request_id text,
  created_at timestamptz(3) not null,
  closed_at timestamptz(3)
);
create unique index effects_one_open_per_invoke on effects (actor_id, invoke_id) where status = 'open';
create index effects_open on effects (queue, id) where status = 'open';
create index effects_of_actor on effects (actor_id, id);
create index effects_of_transaction on effects (transaction_id);

create table chain_cursors (
  chain_id bigint not null primary key,
  block_number bigint not null,
  block_hash text not null,
  updated_at timestamptz(3) not null
);
