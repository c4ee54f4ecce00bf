-- What giving back and rotating credentials and secrets needs to remember.

create table service_secrets (
  number bigint not null primary key,
  check_value text not null unique,
  registered_at timestamptz(3) not null
);

alter table organizations add column suspended_at timestamptz(3);
alter table api_keys add column expires_at timestamptz(3);
alter table publishable_keys add column expires_at timestamptz(3);

-- Who made an authorization, so that nobody takes up the room of others.
alter table claims add column session_token_id uuid;
alter table transfers add column session_token_id uuid;
create index claims_open on claims (unit_id) where status = 'claiming';
create index transfers_open on transfers (unit_id) where status = 'prepared';

-- claims_one_open_per_unit may go: the release before asks for no open claim itself, and names no target of a conflict.
drop index claims_one_open_per_unit;
create unique index claims_one_relayed_per_unit on claims (unit_id) where status = 'claiming' and execution = 'service_relay';

-- transfers_one_open_per_unit may go: the release before asks for no open transfer itself, and names no target of a conflict.
drop index transfers_one_open_per_unit;

-- What operators have in hand when somebody calls: a request id, a wallet, a name.
create index actor_events_by_request on actor_events (request_id) where request_id is not null;
create index effects_by_request on effects (request_id) where request_id is not null;
create index claims_by_recipient on claims (recipient);
create index transfers_by_recipient on transfers (recipient);
create index transfers_by_sender on transfers (sender);
create index units_by_name on units (name) where name is not null;
create index collections_by_name on collections (name);
