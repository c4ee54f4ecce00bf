-- What tokens show in public, and who owns them as the chain says it.

alter table units add column description text;
alter table units add column image_url text;
alter table units add column metadata jsonb;
alter table units add column owner text;
alter table units add column ownership_updated_at timestamptz(3);
alter table units add column owner_block bigint;

alter table collections add column description text;
alter table collections add column image_url text;
alter table collections add column failure jsonb;
alter table collections add column metadata_refreshed_at timestamptz(3);

-- How far owners were followed: the release before moves the other columns alone.
alter table chain_cursors add column owners_block_number bigint;
alter table chain_cursors add column owners_block_hash text;

-- Owners of serials that no unit has yet, as after an older back-up was restored.
create table found_owners (
  collection_id uuid not null references collections (id),
  serial bigint not null,
  owner text not null,
  block_number bigint not null,
  found_at timestamptz(3) not null,
  primary key (collection_id, serial)
);

create table metadata_refreshes (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  collection_id uuid not null references collections (id),
  status text not null constraint metadata_refreshes_status check (status in ('prepared', 'submitted', 'confirmed', 'failed')),
  transaction_hash text,
  failure jsonb,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index metadata_refreshes_by_collection on metadata_refreshes (collection_id, created_at, id);
