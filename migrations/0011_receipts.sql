-- Keys that sign tap receipts, and the values that were refused of each chip.

create table receipt_keys (
  number bigint not null primary key,
  kid text not null unique,
  public_jwk jsonb not null,
  sealed_key text,
  created_at timestamptz(3) not null
);

create table chip_refusals (
  chip_id text not null primary key references chips (chip_id),
  refused_count bigint not null,
  last_refused_at timestamptz(3) not null
);
