-- What an organization's wallets were given and have not used is counted without reading what others' were given.

create index effects_watched_by_organization on effects (organization_id) where status = 'open' and queue like 'chain:%';
