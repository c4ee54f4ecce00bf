-- Why a webhook endpoint was paused, and the feed of test units or of all others without reading past the rest.

alter table webhook_endpoints add column failure jsonb;
create index webhook_endpoints_replaying on webhook_endpoints (id) where replay_from is not null;
create index webhook_endpoints_paused on webhook_endpoints (id) where status = 'paused';
create index events_by_test on events (organization_id, is_test, position) where position is not null;
