-- What operators look at and what limits open work, without reading whole tables.

create index transactions_by_status on transactions (status, lane_id, created_at);
create index effects_by_status on effects (status, created_at);
create index organizations_by_name on organizations (name);
