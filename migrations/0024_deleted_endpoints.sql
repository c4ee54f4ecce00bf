-- Which webhook endpoints are deleted, and still have rows to be purged; and up to which event what waits for an endpoint
-- is to be tried at once. The release before takes a deleted endpoint for one that is paused.

alter table webhook_endpoints add column deleted_at timestamptz(3);
alter table webhook_endpoints add column retry_from uuid;
create index webhook_endpoints_deleted on webhook_endpoints (id) where deleted_at is not null;
create index webhook_endpoints_retrying on webhook_endpoints (id) where retry_from is not null;
