-- Where in the feed what an organization was told from a time on begins, without reading what came before or after.

create index events_by_organization_and_age on events (organization_id, created_at, position) where position is not null;
