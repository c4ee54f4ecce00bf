-- Who did what as an operator, and when: it is asked for after the fact.

create table operator_acts (
  id uuid not null primary key,
  at timestamptz(3) not null,
  actor text not null,
  act text not null,
  subject text not null
);
create index operator_acts_by_subject on operator_acts (subject, id);

-- What the console says first.
create index organizations_suspended on organizations (suspended_at) where suspended_at is not null;
