-- What giving up a nonce, noticing a replaced chain after a restart, and taking up lost serials need to remember.

alter table lanes add column final_block_number bigint;
alter table lanes add column final_block_hash text;

alter table collections add column deployed_block bigint;

alter table transactions add column cancel_requested_at timestamptz(3);
alter table transaction_attempts add column is_cancel boolean not null default false;

create table found_serials (
  collection_id uuid not null references collections (id),
  serial bigint not null,
  chip_id text not null,
  transaction_hash text not null,
  found_at timestamptz(3) not null,
  primary key (collection_id, serial)
);
create index found_serials_by_chip on found_serials (collection_id, chip_id);
