-- Tags as they are made: key sets and their versions, orders of tags, and what an encoding mirrors.

create table key_sets (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  name text not null,
  scheme text not null constraint key_sets_scheme check (scheme in ('an10922', 'sdm-backend', 'boltcard', 'explicit')),
  created_at timestamptz(3) not null,
  retired_at timestamptz(3)
);
create unique index key_sets_name on key_sets (organization_id, name) where retired_at is null;

create table key_set_versions (
  key_set_id uuid not null references key_sets (id),
  version bigint not null constraint key_set_versions_range check (version between 1 and 255),
  sealed_master text,
  created_at timestamptz(3) not null,
  primary key (key_set_id, version)
);

create table manifests (
  id uuid not null primary key,
  organization_id uuid not null references organizations (id),
  key_set_id uuid not null references key_sets (id),
  key_version bigint not null,
  url_template text not null,
  mac boolean not null,
  tamper boolean not null,
  size bigint not null,
  created_at timestamptz(3) not null
);

create table manifest_chips (
  manifest_id uuid not null references manifests (id),
  number bigint not null,
  chip_id text not null references chips (chip_id),
  from_version bigint,
  primary key (manifest_id, number)
);

alter table chips add column key_set_id uuid references key_sets (id);
alter table chips add column next_key_version bigint;
alter table chips add column mac_input text not null default '';
alter table chips add column has_mac boolean not null default false;
alter table chips add column tamper text;
