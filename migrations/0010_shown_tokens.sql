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

-- What is known of units that were issued before.
update units set ownership_updated_at = (select updated_at from actors where actors.id = units.id) where token_status = 'active';
update units set
  owner = (select recipient from claims where claims.unit_id = units.id and claims.status = 'claimed' order by id desc limit 1),
  ownership_updated_at = (select updated_at from claims where claims.unit_id = units.id and claims.status = 'claimed' order by id desc limit 1)
where claimed and exists (select id from claims where claims.unit_id = units.id and claims.status = 'claimed');
update units set
  owner = (select recipient from transfers where transfers.unit_id = units.id and transfers.status = 'confirmed' order by updated_at desc, id desc limit 1),
  ownership_updated_at = (select updated_at from transfers where transfers.unit_id = units.id and transfers.status = 'confirmed' order by updated_at desc, id desc limit 1)
where claimed and exists (select id from transfers where transfers.unit_id = units.id and transfers.status = 'confirmed');

-- The status follows from the token's and the owner, so it is indexed and not stored: src/db/ownership.ts says the same.
create index units_by_ownership on units (organization_id, (case when token_status = 'pending' then 'unissued' when owner is null then 'custody' else 'owned' end), created_at, id);
create index units_of_collection_by_ownership on units (collection_id, (case when token_status = 'pending' then 'unissued' when owner is null then 'custody' else 'owned' end), created_at, id);
create index units_by_owner_block on units (owner_block) where owner_block is not null;
