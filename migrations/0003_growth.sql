-- What answers in the same time however much there is: counts that are kept, lists that an index leads to, and sessions
-- that are found when their time is over.

create table usage_counts (
  organization_id uuid not null references organizations (id),
  quota text not null constraint usage_counts_quota check (quota in ('units', 'collections', 'chips', 'taps_per_month')),
  since timestamptz(3) not null,
  used bigint not null,
  primary key (organization_id, quota, since)
);

create index taps_listed on taps (organization_id, is_test, created_at, id);
create index chips_listed on chips (organization_id, is_test, created_at, chip_id);
create index session_tokens_by_end on session_tokens (expires_at, id);
create index identity_token_uses_by_end on identity_token_uses (expires_at);

-- The new list's index replaces the first. A chip's taps are few, and found by taps_counter_once. Each index in the
-- order of the chips costs a page of log for every tap.
drop index taps_by_organization;
drop index taps_by_chip;
